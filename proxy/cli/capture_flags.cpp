#include "proxy/cli/capture_flags.h"

#include "proxy/cli/objects_file.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/settings.h"
#include "proxy/sink/retention.h"

#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace tw::cli {

void CaptureFlags::add_to(CLI::App& command) {
    command
        .add_option("captures", paths,
                    "Capture files, demos (.demo), or folders of segments; - means a capture on "
                    "standard input")
        ->type_name("CAPTURE...")
        ->required();
    command
        .add_option("--server", server,
                    "Inspect only this server's traffic (by default, servers are recognised by "
                    "what they send)")
        ->type_name("[ADDRESS]:PORT");
    add_memory_flag(command, memory_mib);
}

std::vector<std::string> CaptureFlags::files() const {
    std::vector<std::string> all;
    for (const std::string& path : paths) {
        std::error_code ignored;
        if (!std::filesystem::is_directory(path, ignored)) {
            if (const std::string hint = kind_hint(path, FileType::capture); !hint.empty()) {
                throw UsageError{fmt::format("{}: contains no traffic{}", path, hint)};
            }
            all.push_back(path);
            continue;
        }
        const std::size_t before = all.size();
        for (const sink::Segment& segment : sink::segments_in(path)) {
            if (segment.is_capture()) {
                all.push_back((std::filesystem::path{path} / segment.file).string());
            }
        }
        if (all.size() == before) {
            throw UsageError{fmt::format("{}: contains no capture segments", path)};
        }
    }
    return all;
}

void add_memory_flag(CLI::App& command, std::size_t& memory_mib) {
    command
        .add_option(
            "--memory", memory_mib,
            "Memory budget in MiB for histories, parts and maps; beyond it, the sessions silent "
            "for longest give up theirs, and are verified again from their next full snapshot. "
            "Worlds "
            "may take a quarter as much, and at most 96 MiB")
        ->type_name("MIB")
        ->check(CLI::Range(std::size_t{16}, std::size_t{1} << 20U))
        ->capture_default_str();
}

capture::ServerGuess CaptureFlags::servers() const {
    capture::ServerGuess guess;
    if (!server.empty()) {
        add_server(guess, server);
    }
    return guess;
}

void add_server(capture::ServerGuess& guess, const std::string& server) {
    const HostPort where = parse_host_port(server, "--server");
    std::optional<boost::asio::ip::address> address;
    if (!where.host.empty()) {
        boost::system::error_code error;
        address = boost::asio::ip::make_address(where.host, error);
        if (error) {
            throw UsageError{fmt::format(
                "--server {}: captures contain addresses, not names; give ADDRESS:PORT or :PORT",
                server)};
        }
    }
    guess.add_server(where.port, address);
}

void LookupFlags::add_to(CLI::App& command, std::string_view maps_for) {
    make_repeatable(
        command
            .add_option("--maps", maps,
                        fmt::format("Folder to search for maps (repeatable), {}", maps_for))
            ->type_name("DIR"));
    command
        .add_option("--objects", objects_file,
                    "JSON file describing a mod's objects and messages (snapshot/OBJECTS.md)")
        ->type_name("FILE");
}

std::vector<std::filesystem::path> LookupFlags::map_folders() const {
    return existing_folders("--maps", maps);
}

wire::ModDescription LookupFlags::description() const {
    wire::ModDescription mod;
    read_objects_file(objects_file, mod);
    return mod;
}

} // namespace tw::cli
