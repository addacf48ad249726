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
    std::string url{};  ///< nats://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/STREAM]
    std::string file{}; ///< a bus::SecretsFile; empty for an anonymous connection
    // Values of the flags of earlier versions, which `url` and `file` replace.
    std::vector<std::string> urls{};
    std::string old_stream{};
    std::string credentials{};
    bool tls = false;
    std::string authorities{};
    std::string certificate{};
    std::string key{};

    void add_to(Command& command, const std::string& about);

    [[nodiscard]] bool is_enabled() const { return !url.empty() || !urls.empty(); }

    /// How to connect to the bus. Errors: UsageError, also for files that cannot be read.
    [[nodiscard]] bus::BusAccess access() const;
    /// The stream's name. Errors: UsageError.
    [[nodiscard]] std::string stream() const;

    /// The files of all flags; an empty path for each flag that was not given.
    [[nodiscard]] std::vector<std::string> given_files() const {
        return {file, credentials, authorities, certificate, key};
    }

    /// The files that must be readable at every connection, and their folders, because a renewed
    /// file replaces the old one.
    [[nodiscard]] std::vector<std::filesystem::path> files() const;
};

/// The flags about publishing records.
struct BusFlags {
    BusAccessFlags access;
    std::string name;
    std::string limits = "7d,10GiB";
    int replicas = 1;
    std::string spool; ///< folder and size; empty to use memory only

    void add_to(Command& command);

    [[nodiscard]] bool is_enabled() const { return access.is_enabled(); }

    /// The folder of --spool; empty if not given.
    /// Errors: UsageError.
    [[nodiscard]] std::filesystem::path spool_folder() const;
    /// The options for publishing. `server`: the name to publish under if the user gave none.
    /// `many`: whether there are several servers, each with a name.
    /// Errors: UsageError.
    [[nodiscard]] bus::PublishOptions options(const std::string& server, bool many = false) const;
    [[nodiscard]] std::uint64_t check_spool() const;
    /// Opens the bus output; returns null if nothing is published.
    /// Errors: UsageError.
    [[nodiscard]] std::unique_ptr<bus::BusOutput>
    open(const std::string& server, bus::BusTimeouts timeouts, bool many = false) const;
};

/// Waits for acknowledgements and prints on standard error how many records were not published.
/// Returns true if all records were published.
[[nodiscard]] bool finish_publishing(store::OutputFile& bus);

/// The flags about the live page.
struct HttpFlags {
    std::vector<std::string> addresses; ///< empty if there is no page
    web::AccessOptions access{.token_hint =
                                  "twscope logs where to find it at start (see --http-token-file)",
                              .unknown_host_hint = "start twscope with --http-host NAME"};
    std::string token_file; ///< empty for the file in the state folder
    std::string recordings; ///< folder; empty if the page cannot record

    void add_to(Command& command);
    /// Adds the flags of a page that cannot change anything. `about`: what --http serves.
    void add_access(Command& command, const std::string& about);

    [[nodiscard]] bool is_enabled() const { return !addresses.empty(); }

    /// The addresses of the page.
    /// Errors: UsageError.
    [[nodiscard]] std::vector<web::HttpAddress> page_addresses() const;

    /// Binds the page's addresses.
    /// Errors: relay::RetryableStartError for an address that may become available; UsageError.
    [[nodiscard]] std::vector<web::ListeningSocket> open_page_sockets() const;

    /// How the page may record; nullopt if it may not.
    /// Errors: UsageError without a page, or for a folder that cannot be written to.
    [[nodiscard]] std::optional<pipeline::PageRecordingOptions>
    page_recordings(const demo::DemoOptions& demos) const;

    /// Reads the page's token from its file, or from the state folder. Errors: UsageError.
    [[nodiscard]] process::PageToken token(const std::filesystem::path& state_folder) const;
};

} // namespace tw::cli
