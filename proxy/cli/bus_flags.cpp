#include "proxy/cli/bus_flags.h"

#include "proxy/bus/subjects.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/sink/complaint.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace tw::cli {

namespace {

constexpr std::array<std::string_view, 2> kSchemes{"nats://", "tls://"};
constexpr std::uint64_t kUsualSpool = std::uint64_t{1} << 30U;
constexpr std::chrono::seconds kUsualAge = std::chrono::hours{7 * 24};

void check_url(const std::string& url) {
    for (const std::string_view scheme : kSchemes) {
        if (url.starts_with(scheme) && url.size() > scheme.size() &&
            url.find_first_of(" \t\r\n") == std::string::npos) {
            return;
        }
    }
    throw UsageError{fmt::format("--nats {}: expected nats://HOST:PORT or tls://HOST:PORT, for "
                                 "example nats://127.0.0.1:4222",
                                 bus::shown_url(url))};
}

void check_file(const char* flag, const std::string& path) {
    if (!path.empty() && ::access(path.c_str(), R_OK) != 0) {
        throw UsageError{fmt::format("{} {}: {}; name a readable file", flag, path,
                                     std::generic_category().message(errno))};
    }
}

/// Folders in which much stands that is not ours.
constexpr std::array<std::string_view, 14> kShared{"/",    "/boot", "/dev",  "/etc", "/home",
                                                   "/opt", "/proc", "/root", "/run", "/srv",
                                                   "/sys", "/tmp",  "/usr",  "/var"};

bool is_shared(const std::filesystem::path& folder) {
    return folder.empty() || folder.parent_path() == "/home" ||
           std::find(kShared.begin(), kShared.end(), folder.string()) != kShared.end();
}

/// A file that is renewed by renaming, or by another link, is another one then: only its folder lasts.
void add_with_folders(const std::filesystem::path& file,
                      std::vector<std::filesystem::path>& readable) {
    readable.push_back(file);
    std::error_code ignored;
    const auto named = std::filesystem::weakly_canonical(
        std::filesystem::absolute(file, ignored).parent_path(), ignored);
    const auto real = std::filesystem::weakly_canonical(file, ignored).parent_path();
    for (const auto& folder : {named, real}) {
        if (!is_shared(folder)) {
            readable.push_back(folder);
        }
    }
}

} // namespace

void BusAccessFlags::add_to(CLI::App& command, const std::string& about) {
    repeatable(command.add_option("--nats", urls, about)->type_name("URL,...")->delimiter(','));
    command
        .add_option("--nats-stream", stream, "Stream on the bus; subjects are STREAM.SERVER.TYPE")
        ->type_name("NAME")
        ->capture_default_str();
    command
        .add_option("--nats-creds", credentials,
                    "Credentials file (.creds) for the bus, as written by nsc")
        ->type_name("FILE");
    command.add_flag("--nats-tls", tls,
                     "Encrypt the connection even if the bus does not require it");
    command
        .add_option("--nats-tls-ca", authorities,
                    "CA certificates (PEM) to verify the bus against, instead of the system's")
        ->type_name("FILE");
    command
        .add_option("--nats-tls-cert", certificate,
                    "Client certificate (PEM), for a bus that requires one")
        ->type_name("FILE");
    command.add_option("--nats-tls-key", key, "Private key (PEM) of --nats-tls-cert")
        ->type_name("FILE");
}

bus::Access BusAccessFlags::access() const {
    for (const std::string& url : urls) {
        check_url(url);
    }
    if (!bus::is_subject_token(stream)) {
        throw UsageError{
            fmt::format("--nats-stream {}: expected letters, digits, - and _, at most {} in all",
                        stream, bus::kMaxToken)};
    }
    if (certificate.empty() != key.empty()) {
        throw UsageError{"--nats-tls-cert and --nats-tls-key belong together; give both"};
    }
    check_file("--nats-creds", credentials);
    check_file("--nats-tls-ca", authorities);
    check_file("--nats-tls-cert", certificate);
    check_file("--nats-tls-key", key);
    return {.urls = urls,
            .credentials = credentials,
            .tls = tls,
            .authorities = authorities,
            .certificate = certificate,
            .key = key};
}

std::vector<std::filesystem::path> BusAccessFlags::files() const {
    std::vector<std::filesystem::path> files;
    if (!on()) {
        return files;
    }
    // What a name is looked up in.
    files.assign({"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf",
                  "/etc/gai.conf", "/run/systemd/resolve"});
    for (const std::string* const path : {&credentials, &authorities, &certificate, &key}) {
        if (!path->empty()) {
            add_with_folders(*path, files);
        }
    }
    return files;
}

void BusFlags::add_to(CLI::App& command) {
    access.add_to(command, "Publish records to NATS JetStream (repeatable, for the servers of a "
                           "cluster), for example nats://127.0.0.1:4222; see docs/fleet.md");
    command
        .add_option("--nats-name", name,
                    "Name of this server on the bus, SERVER in its subjects; by default its "
                    "address, or the file's name")
        ->type_name("NAME");
    command
        .add_option("--nats-limits", limits,
                    "Age and size limits for a stream that twscope creates; the oldest records are "
                    "dropped first")
        ->type_name("TIME,SIZE")
        ->capture_default_str();
    command.add_option("--nats-replicas", replicas, "Replicas of a stream that twscope creates")
        ->check(CLI::Range(1, 5))
        ->capture_default_str();
    command
        .add_option("--spool", spool,
                    "Spool records in this folder until the bus acknowledges them, up to this size "
                    "(1GiB if omitted), so that an hour without the bus loses nothing; when full, "
                    "the oldest are dropped")
        ->type_name("DIR,SIZE");
}

std::filesystem::path BusFlags::spool_folder() const {
    return spool.substr(0, spool.rfind(','));
}

/// How large it may grow.
std::uint64_t BusFlags::check_spool() const {
    if (spool.empty()) {
        return 0;
    }
    const auto comma = spool.rfind(',');
    const TimeAndSize size = comma == std::string::npos
                                 ? TimeAndSize{.bytes = kUsualSpool}
                                 : parse_time_and_size("--spool", spool.substr(comma + 1));
    if (size.bytes < bus::SpoolFolder::kLeastBytes || size.time.count() != 0 || comma == 0) {
        throw UsageError{fmt::format("--spool {}: expected a folder and a size of at least 1 MiB, "
                                     "for example spool,1GiB",
                                     spool)};
    }
    return size.bytes;
}

bus::PublishOptions BusFlags::options(const std::string& server, bool many) const {
    if (!name.empty() && !bus::is_subject_token(name)) {
        throw UsageError{
            fmt::format("--nats-name {}: expected letters, digits, - and _, at most {} in all",
                        name, bus::kMaxToken)};
    }
    const std::string own = name.empty() ? bus::subject_token(server) : name;
    const TimeAndSize kept = parse_time_and_size("--nats-limits", limits);
    const std::uint64_t spool_bytes = check_spool();
    return {.access = access.access(),
            .stream = access.stream,
            .server = many ? bus::many_servers(own) : own,
            .limits = {.age = kept.time.count() == 0 ? kUsualAge : kept.time,
                       .bytes = kept.bytes,
                       .replicas = replicas},
            .spool = spool_folder(),
            .spool_bytes = spool_bytes};
}

std::unique_ptr<bus::BusOutput> BusFlags::open(const std::string& server, bus::Patience patience,
                                               bool many) const {
    if (!on()) {
        return nullptr;
    }
    try {
        return std::make_unique<bus::BusOutput>(options(server, many), patience);
    } catch (const std::system_error& error) {
        throw UsageError{fmt::format("--spool {}: {}; name a writable folder whose parent exists",
                                     spool, error.code().message())};
    }
}

bool finish_publishing(sink::RecordTarget& bus) {
    bus.finish();
    if (bus.lost() != 0) {
        sink::complain("--nats {}: {} records could not be published", bus.path(), bus.lost());
    }
    return bus.lost() == 0;
}

} // namespace tw::cli
