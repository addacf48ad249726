#include "proxy/cli/publish_flags.h"

#include "proxy/base/numbers.h"
#include "proxy/bus/subjects.h"
#include "proxy/cli/help.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/sink/output.h"

#include <cerrno>
#include <iterator>
#include <tuple>

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <fmt/ranges.h>
#include <unistd.h>

namespace tw::cli {

namespace {

constexpr std::array<std::string_view, 2> kUrlSchemes{"nats://", "tls://"};
constexpr std::uint64_t kDefaultSpoolBytes = std::uint64_t{1} << 30U;
constexpr std::chrono::seconds kDefaultBusAge = std::chrono::hours{7 * 24};

struct BusUrl {
    std::vector<std::string> urls; ///< one for each server of the bus
    std::string stream;            ///< empty for the default stream
};

BusUrl parse_bus_url(const std::string& url) {
    const auto* const scheme = std::ranges::find_if(
        kUrlSchemes, [&](std::string_view each) { return url.starts_with(each); });
    const std::size_t begin = scheme == kUrlSchemes.end() ? url.size() : scheme->size();
    const std::size_t at = url.rfind('@');
    const std::size_t hosts = at == std::string::npos || at < begin ? begin : at + 1;
    const std::size_t slash = std::min(url.find('/', hosts), url.size());
    BusUrl parsed{.urls = {}, .stream = url.substr(std::min(slash + 1, url.size()))};
    const std::string list = url.substr(hosts, slash - hosts);
    boost::algorithm::split(parsed.urls, list, boost::algorithm::is_any_of(","));
    if (url.find_first_of(" \t\r\n") != std::string::npos ||
        std::ranges::find(parsed.urls, "") != parsed.urls.end()) {
        throw usage_error("--bus {}: expected nats://HOST:PORT or tls://HOST:PORT, for "
                          "example nats://127.0.0.1:4222",
                          bus::url_without_password(url));
    }
    for (std::string& each : parsed.urls) {
        each.insert(0, url, 0, hosts);
    }
    return parsed;
}

void check_readable(const char* flag, const std::string& path) {
    if (!path.empty() && ::access(path.c_str(), R_OK) != 0) {
        throw usage_error("{} {}: {}; name a readable file", flag, path,
                          std::generic_category().message(errno));
    }
}

/// Folders with files of the system or of all users. The observer must not get access to them.
constexpr std::array<std::string_view, 14> kProtectedFolders{
    "/",     "/boot", "/dev", "/etc", "/home", "/opt", "/proc",
    "/root", "/run",  "/srv", "/sys", "/tmp",  "/usr", "/var"};

bool is_protected_folder(const std::filesystem::path& folder) {
    return folder.empty() || folder.parent_path() == "/home" ||
           std::ranges::find(kProtectedFolders, folder.string()) != kProtectedFolders.end();
}

/// Adds a file and its folder. The folder must be readable, because another file may replace this
/// file when it is renewed.
void add_file_and_folder(const std::filesystem::path& file,
                         std::vector<std::filesystem::path>& readable) {
    readable.push_back(file);
    std::error_code ignored;
    const std::filesystem::path link = std::filesystem::absolute(file, ignored);
    for (const auto& folder :
         {resolve_path(link.parent_path()), resolve_path(link).parent_path()}) {
        if (!is_protected_folder(folder)) {
            readable.push_back(folder);
        }
    }
}

} // namespace

void BusAccessFlags::add_to(Command& command, const std::string& about) {
    command.add("--bus", &url, "URL",
                about + ": nats://HOST:PORT/STREAM, or tls:// to encrypt; several servers of "
                        "one bus as HOST:PORT,HOST:PORT; see docs/fleet.md");
    command.add("--bus-file", &given.secrets, "FILE",
                "Credentials for the bus (.creds) and, after them, certificates (PEM): the "
                "client's with its key, and those of CAs to verify the bus against");
    command.dependent_flags.push_back({{"--bus-file"}, {"--bus", "--nats"}});
    const auto add_old = [&](const char* name, std::string& variable, const char* replacement) {
        command.add(name, &variable, "VALUE", {}).replacement = replacement;
    };
    command.add_list("--nats", old_urls, "URL,...", {}).replacement = "--bus";
    command.add_switch("--nats-tls", given.tls, {}).replacement =
        "the scheme of --bus: tls://HOST:PORT";
    add_old("--nats-stream", old_stream, "the path of --bus: nats://HOST:PORT/STREAM");
    add_old("--nats-creds", given.credentials, "--bus-file");
    add_old("--nats-tls-ca", given.authorities, "--bus-file");
    add_old("--nats-tls-cert", given.certificate, "--bus-file");
    add_old("--nats-tls-key", given.key, "--bus-file");
}

void check_bus_name(std::string_view flag, const std::string& name) {
    if (!name.empty() && !bus::is_subject_token(name)) {
        throw usage_error("{} {}: expected letters, digits, - and _, at most {} in all", flag, name,
                          bus::kMaxSubjectTokenBytes);
    }
}

std::string BusAccessFlags::stream_name() const {
    std::string name = url.empty() ? old_stream : parse_bus_url(url).stream;
    check_bus_name("--bus: the stream", name);
    return name.empty() ? bus::kDefaultStream : name;
}

bus::BusAccess BusAccessFlags::bus_access() const {
    if (!url.empty() && !old_urls.empty()) {
        throw UsageError{"--bus and --nats name one thing; give --bus alone"};
    }
    bus::BusAccess access = given;
    for (const std::string& each : url.empty() ? old_urls : std::vector{url}) {
        const auto parsed = parse_bus_url(each).urls;
        access.urls.insert(access.urls.end(), parsed.begin(), parsed.end());
    }
    std::ignore = stream_name();
    if (given.certificate.empty() != given.key.empty()) {
        throw UsageError{"--nats-tls-cert and --nats-tls-key belong together; give both"};
    }
    if (!given.secrets.empty()) {
        if (const auto secrets = bus::read_secrets(given.secrets); !secrets) {
            throw usage_error("--bus-file {}: {}", given.secrets, secrets.error());
        }
        if (named_files() != std::vector<std::string>{given.secrets, {}, {}, {}, {}}) {
            throw UsageError{"--bus-file holds all that --nats-creds and --nats-tls-... name; give "
                             "it alone"};
        }
    }
    check_readable("--nats-creds", given.credentials);
    check_readable("--nats-tls-ca", given.authorities);
    check_readable("--nats-tls-cert", given.certificate);
    check_readable("--nats-tls-key", given.key);
    return access;
}

std::vector<std::filesystem::path> BusAccessFlags::readable_files() const {
    std::vector<std::filesystem::path> files;
    if (!is_enabled()) {
        return files;
    }
    // The files used for looking up host names.
    files.assign({"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf",
                  "/etc/gai.conf", "/run/systemd/resolve"});
    for (const std::string& path : named_files()) {
        if (!path.empty()) {
            add_file_and_folder(path, files);
        }
    }
    return files;
}

void BusFlags::add_to(Command& command) {
    access.add_to(command, "Publish records to NATS JetStream");
    command.add("--bus-name", &name, "NAME",
                "Name of this server on the bus, SERVER in its subjects; by default its "
                "address, or the file's name");
    command.add("--bus-limits", &limits, "TIME,SIZE",
                "Age and size limits for a stream that twscope creates; the oldest records are "
                "dropped first");
    command.add_number("--bus-replicas", &replicas, 1, 5,
                       "Replicas of a stream that twscope creates");
    command.add("--nats-name", &name, "NAME", {}).replacement = "--bus-name";
    command.add("--nats-limits", &limits, "TIME,SIZE", {}).replacement = "--bus-limits";
    command.add_number("--nats-replicas", &replicas, 1, 5, {}).replacement = "--bus-replicas";
    command.add("--spool", &spool, "DIR,SIZE",
                "Spool records in this folder until the bus acknowledges them, up to this size "
                "(1GiB if omitted), so that an hour without the bus loses nothing; when full, "
                "the oldest are dropped");
    command.dependent_flags.push_back(
        {{"--bus-name", "--bus-limits", "--bus-replicas", "--spool"}, {"--bus", "--nats"}});
}

std::filesystem::path BusFlags::spool_folder() const {
    return spool.substr(0, spool.rfind(','));
}

std::uint64_t BusFlags::spool_bytes() const {
    if (spool.empty()) {
        return 0;
    }
    const auto comma = spool.rfind(',');
    const TimeAndSize size = comma == std::string::npos
                                 ? TimeAndSize{.bytes = kDefaultSpoolBytes}
                                 : parse_time_and_size("--spool", spool.substr(comma + 1));
    if (size.bytes < bus::SpoolFolder::kMinSpoolBytes || size.time.count() != 0 || comma == 0) {
        throw usage_error("--spool {}: expected a folder and a size of at least 1 MiB, "
                          "for example spool,1GiB",
                          spool);
    }
    return size.bytes;
}

bus::PublishOptions BusFlags::publish_options(const std::string& server,
                                              bool has_named_servers) const {
    check_bus_name("--bus-name", name);
    const std::string own = name.empty() ? bus::make_subject_token(server) : name;
    const TimeAndSize kept = parse_time_and_size("--bus-limits", limits);
    return {.access = access.bus_access(),
            .stream = access.stream_name(),
            .server = has_named_servers ? bus::make_all_servers_name(own) : own,
            .limits = {.age = kept.time.count() == 0 ? kDefaultBusAge : kept.time,
                       .bytes = kept.bytes,
                       .replicas = replicas},
            .spool = spool_folder(),
            .spool_bytes = spool_bytes()};
}

std::unique_ptr<bus::BusOutput> BusFlags::open_output(const std::string& server,
                                                      bus::BusTimeouts timeouts,
                                                      bool has_named_servers) const {
    if (!is_enabled()) {
        return nullptr;
    }
    try {
        return std::make_unique<bus::BusOutput>(publish_options(server, has_named_servers),
                                                timeouts);
    } catch (const std::system_error& error) {
        throw usage_error("--spool {}: {}; name a writable folder whose parent exists", spool,
                          error.code().message());
    }
}

bool finish_publishing(store::OutputFile& bus) {
    bus.finish_writing();
    if (bus.num_lost_entries() != 0) {
        sink::print_error("--bus {}: {} could not be published", bus.path(),
                          record::count_with_noun(bus.num_lost_entries(), "record[s]"));
    }
    return bus.num_lost_entries() == 0;
}

web::HttpAddress parse_http_address(const std::string& text) {
    constexpr std::string_view kUnixSocketPrefix = "unix:";
    if (text.starts_with(kUnixSocketPrefix)) {
        if (text.size() == kUnixSocketPrefix.size()) {
            throw usage_error("--http {}: expected unix:PATH", text);
        }
        return {.path = text.substr(kUnixSocketPrefix.size())};
    }
    constexpr const char* kDefaultAddress = "127.0.0.1";
    if (text.find(':') == std::string::npos) {
        const auto port = base::parse_number<std::uint16_t>(text);
        if (!port) {
            throw usage_error("--http {}: expected a port up to 65535, for example {}, or "
                              "ADDR:PORT, or unix:PATH",
                              text, kSuggestedHttpPort);
        }
        return {.address = kDefaultAddress, .port = *port};
    }
    const auto where = parse_endpoint(text, "--http", kDefaultAddress);
    return {.address = where.address().to_string(), .port = where.port()};
}

void HttpFlags::add_to(Command& command) {
    add_access_flags(
        command, "Serve a live page, /healthz, /readyz, /metrics and /api/state at this address");
    command.add("--http-recordings", &recordings, "DIR",
                "Let token holders record demos (and, with --show-secrets, captures) from the "
                "page to this folder (at most 4 GiB), and download them");
}

void HttpFlags::add_access_flags(Command& command, const std::string& about) {
    command.add("--http", &addresses, "[ADDR:]PORT|unix:PATH",
                fmt::format("{} (repeatable); a port alone means 127.0.0.1 ({} is "
                            "usual), unix:PATH a unix socket for this user only",
                            about, kSuggestedHttpPort));
    command.add("--http-host", &access.hosts, "NAME",
                "Host name, with dots, by which browsers may reach the page (repeatable); "
                "addresses and localhost always work");
    command.add("--http-token-file", &token_file, "FILE",
                "File whose first line is the token, required for changes and for reading from "
                "another machine [http.token in the --state folder, created if missing]");
    command.add_switch(
        "--http-open-reading", access.network_may_read,
        "Let anyone who can reach the page read it without the token, even from other machines");
    command.dependent_flags.push_back(
        {{"--http-host", "--http-token-file", "--http-open-reading"}, {"--http"}});
}

std::optional<pipeline::PageRecordingOptions>
HttpFlags::page_recording_options(const demo::DemoOptions& demos) const {
    if (recordings.empty()) {
        return std::nullopt;
    }
    if (!is_enabled()) {
        throw usage_error(
            "--http-recordings needs a page to record from; add --http, for example --http {}",
            kSuggestedHttpPort);
    }
    pipeline::PageRecordingOptions options{.demos = demos, .allows_captures = demos.show_secrets};
    options.demos.folder = require_writable_folder("--http-recordings", recordings);
    return options;
}

std::vector<web::HttpAddress> HttpFlags::page_addresses() const {
    std::vector<web::HttpAddress> all;
    std::transform(addresses.begin(), addresses.end(), std::back_inserter(all), parse_http_address);
    return all;
}

std::string HttpFlags::describe() const {
    if (!is_enabled()) {
        return fmt::format("no live page (--http {} serves one)", kSuggestedHttpPort);
    }
    std::vector<std::string> parts;
    for (const std::string& each : addresses) {
        const web::HttpAddress address = parse_http_address(each);
        const bool is_local =
            !address.path.empty() || boost::asio::ip::make_address(address.address).is_loopback();
        parts.push_back(fmt::format("{} ({})", each,
                                    is_local                  ? "this machine only"
                                    : access.network_may_read ? "anyone may read"
                                                              : "reading needs the token"));
    }
    return fmt::format("live page on {}", fmt::join(parts, ", "));
}

std::vector<web::ListeningSocket> HttpFlags::open_page_sockets() const {
    std::vector<web::ListeningSocket> listening;
    try {
        for (const web::HttpAddress& each : page_addresses()) {
            listening.emplace_back(each);
        }
    } catch (const web::RetryableListenError& error) {
        throw relay::RetryableStartError{fmt::format("--http: {}", error.what())};
    } catch (const web::ListenError& error) {
        throw usage_error("--http: {}", error.what());
    }
    return listening;
}

void HttpFlags::check_token_file() const {
    if (is_enabled() && !token_file.empty()) {
        std::ignore = read_token({});
    }
}

process::PageToken HttpFlags::read_token(const std::filesystem::path& state_folder) const {
    if (token_file.empty()) {
        return process::read_or_create_token(state_folder);
    }
    auto token = process::read_token(token_file);
    if (!token) {
        throw usage_error("--http-token-file {}", token.error());
    }
    return *std::move(token);
}

} // namespace tw::cli
