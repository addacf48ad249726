#pragma once

#include "proxy/bus/bus_output.h"
#include "proxy/bus/link.h"
#include "proxy/demo/demo_sink.h"
#include "proxy/pipeline/page_recordings.h"
#include "proxy/process/state_folder.h"
#include "proxy/web/admin.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw::cli {

struct Command;

/// Checks a name that becomes a part of subjects on the bus, unless it is empty.
/// Errors: UsageError that begins with the flag.
void check_bus_name(std::string_view flag, const std::string& name);

/// The flags about access to a message bus, for publishing and collecting.
struct BusAccessFlags {
    std::string url{}; ///< nats://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/STREAM]
    /// The values of the other flags; has no URLs. Flags of earlier versions set all members except
    /// `secrets`.
    bus::BusAccess given{};
    // Values of the flags of earlier versions, which `url` replaces.
    std::vector<std::string> old_urls{};
    std::string old_stream{};

    /// `about`: the start of the help of --bus.
    void add_to(Command& command, const std::string& about);

    [[nodiscard]] bool is_enabled() const { return !url.empty() || !old_urls.empty(); }

    /// Returns how to connect to the bus. Errors: UsageError, also for files that cannot be read.
    [[nodiscard]] bus::BusAccess bus_access() const;
    /// Returns the name of the stream. Errors: UsageError.
    [[nodiscard]] std::string stream_name() const;

    /// Returns the files that the flags name; an empty path for each flag that was not given.
    [[nodiscard]] std::vector<std::string> named_files() const {
        return {given.secrets, given.credentials, given.authorities, given.certificate, given.key};
    }

    /// Returns the files that are read at every connection, and their folders, because a renewed
    /// file replaces the old one.
    [[nodiscard]] std::vector<std::filesystem::path> readable_files() const;
};

struct BusFlags {
    BusAccessFlags access;
    std::string name;
    std::string limits = "7d,10GiB";
    int replicas = 1;
    std::string spool; ///< folder and size; empty to use memory only

    void add_to(Command& command);

    [[nodiscard]] bool is_enabled() const { return access.is_enabled(); }

    /// Returns the folder of --spool; empty if not given.
    [[nodiscard]] std::filesystem::path spool_folder() const;
    /// Returns the size limit of --spool in bytes; 0 if not given. Errors: UsageError.
    [[nodiscard]] std::uint64_t spool_bytes() const;
    /// Returns the options for publishing. `server`: the name to publish under if the user gave
    /// none. `has_named_servers`: whether records have the names of several servers.
    /// Errors: UsageError.
    [[nodiscard]] bus::PublishOptions publish_options(const std::string& server,
                                                      bool has_named_servers = false) const;
    /// Opens the bus output; returns null if nothing is published. Errors: UsageError.
    [[nodiscard]] std::unique_ptr<bus::BusOutput> open_output(const std::string& server,
                                                              bus::BusTimeouts timeouts,
                                                              bool has_named_servers = false) const;
};

/// Waits for acknowledgements and prints on standard error how many records were not published.
/// Returns true if all records were published.
[[nodiscard]] bool finish_publishing(store::OutputFile& bus);

[[nodiscard]] web::HttpAddress parse_http_address(const std::string& text);

struct HttpFlags {
    std::vector<std::string> addresses; ///< empty if there is no page
    web::AccessOptions access{.token_hint =
                                  "twscope logs where to find it at start (see --http-token-file)",
                              .unknown_host_hint = "start twscope with --http-host NAME"};
    std::string token_file; ///< empty for the file in the state folder
    std::string recordings; ///< folder; empty if the page cannot record

    void add_to(Command& command);
    /// Adds the flags of a page that cannot change anything. `about`: what --http serves.
    void add_access_flags(Command& command, const std::string& about);

    [[nodiscard]] bool is_enabled() const { return !addresses.empty(); }

    [[nodiscard]] std::vector<web::HttpAddress> page_addresses() const;
    /// Returns a line that says where the page is served, and who may read it.
    [[nodiscard]] std::string describe() const;

    /// Binds the page's addresses.
    /// Errors: relay::RetryableStartError for an address that may become available; UsageError.
    [[nodiscard]] std::vector<web::ListeningSocket> open_page_sockets() const;

    /// Returns how the page may record; nullopt if it may not.
    /// Errors: UsageError without a page, or for a folder that cannot be written to.
    [[nodiscard]] std::optional<pipeline::PageRecordingOptions>
    page_recording_options(const demo::DemoOptions& demos) const;

    /// Checks that the token file, if given, holds a token. Errors: UsageError.
    void check_token_file() const;

    /// Reads the page's token from its file, or from the state folder. Errors: UsageError.
    [[nodiscard]] process::PageToken read_token(const std::filesystem::path& state_folder) const;
};

} // namespace tw::cli
