#include "proxy/cli/http_flags.h"

#include "proxy/cli/settings.h"
#include "proxy/relay/start_error.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <system_error>
#include <tuple>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace tw::cli {

namespace {

constexpr std::string_view kUnix = "unix:";

std::uint16_t read_port(const std::string& text) {
    std::uint16_t port = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), port).ec != std::errc{}) {
        throw UsageError{fmt::format("--http {}: expected a port up to 65535, for example 9303, or "
                                     "ADDR:PORT, or unix:PATH",
                                     text)};
    }
    return port;
}

admin::HttpAddress read_address(const std::string& text) {
    if (text.starts_with(kUnix)) {
        if (text.size() == kUnix.size()) {
            throw UsageError{fmt::format("--http {}: expected unix:PATH", text)};
        }
        return {.path = text.substr(kUnix.size())};
    }
    const bool port_alone =
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    const HostPort where = port_alone ? HostPort{.host = {}, .port = read_port(text)}
                                      : parse_host_port(text, "--http");
    const std::string host = where.host.empty() ? "127.0.0.1" : where.host;
    boost::system::error_code error;
    std::ignore = boost::asio::ip::make_address(host, error);
    if (error) {
        throw UsageError{fmt::format("--http {}: expected an address like 127.0.0.1:9303, not a "
                                     "name",
                                     text)};
    }
    return {.address = host, .port = where.port};
}

} // namespace

void HttpFlags::add_to(CLI::App& command) {
    add_access(command,
               "Serve a live page, /healthz, /readyz, /metrics and /api/state at this address");
    command
        .add_option("--http-recordings", recordings,
                    "Let token holders record demos (and, with --show-secrets, captures) from the "
                    "page to this folder (at most 4 GiB), and download them")
        ->type_name("DIR");
}

void HttpFlags::add_access(CLI::App& command, const std::string& about) {
    repeatable(command
                   .add_option("--http", addresses,
                               about +
                                   " (repeatable); a port alone means 127.0.0.1 (9303 is usual), "
                                   "unix:PATH a unix socket for this user only")
                   ->type_name("[ADDR:]PORT|unix:PATH"));
    repeatable(
        command
            .add_option("--http-host", hosts,
                        "Host name, with dots, by which browsers may reach the page (repeatable); "
                        "addresses and localhost always work")
            ->type_name("NAME"));
    command
        .add_option("--http-token-file", token_file,
                    "File whose first line is the token, required for changes and for reading from "
                    "another machine [http.token in the --state folder, created if missing]")
        ->type_name("FILE");
    command.add_flag(
        "--http-open-reading", open_reading,
        "Let anyone who can reach the page read it without the token, even from other machines");
}

std::optional<run::PageRecordingOptions>
HttpFlags::page_recordings(const sink::DemoOptions& demos) const {
    if (recordings.empty()) {
        return std::nullopt;
    }
    if (!on()) {
        throw UsageError{
            "--http-recordings needs a page to record from; add --http, for example --http 9303"};
    }
    run::PageRecordingOptions options{.demos = demos, .captures = demos.show_secrets};
    options.demos.folder = existing_folders("--http-recordings", {recordings}).front();
    if (::access(options.demos.folder.c_str(), W_OK | X_OK) != 0) {
        throw UsageError{fmt::format("--http-recordings {}: {}; name a writable folder", recordings,
                                     std::generic_category().message(errno))};
    }
    return options;
}

std::vector<admin::HttpAddress> HttpFlags::where() const {
    std::vector<admin::HttpAddress> all;
    std::transform(addresses.begin(), addresses.end(), std::back_inserter(all), read_address);
    return all;
}

std::vector<admin::Listening> HttpFlags::listen() const {
    std::vector<admin::Listening> listening;
    try {
        for (const admin::HttpAddress& each : where()) {
            listening.emplace_back(each);
        }
    } catch (const admin::ListenLaterError& error) {
        throw relay::NotYetError{fmt::format("--http: {}", error.what())};
    } catch (const admin::ListenError& error) {
        throw UsageError{fmt::format("--http: {}", error.what())};
    }
    return listening;
}

admin::AdminOptions HttpFlags::options() const {
    return {.hosts = hosts,
            .unknown_host_hint = "start twscope with --http-host NAME",
            .access = {.open_reading = open_reading,
                       .how = "twscope logs where to find it at start (see --http-token-file)"}};
}

run::PageToken HttpFlags::token(const std::filesystem::path& state_folder) const {
    if (token_file.empty()) {
        return run::keep_token(state_folder);
    }
    auto token = run::read_token(token_file);
    if (!token) {
        throw UsageError{fmt::format("--http-token-file {}", token.error())};
    }
    return *std::move(token);
}

} // namespace tw::cli
