#pragma once

#include "proxy/bus/bus_output.h"
#include "proxy/bus/link.h"
#include "proxy/pipeline/page_recordings.h"
#include "proxy/process/state_folder.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/web/admin.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags about getting onto a bus, of who publishes and who collects.
struct BusAccessFlags {
    std::vector<std::string> urls{}; ///< empty: none
    std::string stream = bus::kStream;
    std::string credentials{};
    bool tls = false;
    std::string authorities{};
    std::string certificate{};
    std::string key{};

    void add_to(CLI::App& command, const std::string& about);

    [[nodiscard]] bool on() const { return !urls.empty(); }

    /// Errors: UsageError, also for files that cannot be read.
    [[nodiscard]] bus::Access access() const;
    /// What has to be readable whenever it connects: files, and the folders in which they are renewed.
    [[nodiscard]] std::vector<std::filesystem::path> files() const;
};

/// The flags about publishing records.
struct BusFlags {
    BusAccessFlags access;
    std::string name;
    std::string limits = "7d,10GiB";
    int replicas = 1;
    std::string spool; ///< folder and size; empty: only memory

    void add_to(CLI::App& command);

    [[nodiscard]] bool on() const { return access.on(); }

    /// The folder of --spool; empty: none. Errors: UsageError.
    [[nodiscard]] std::filesystem::path spool_folder() const;
    /// `server`: what it is called where no name was given; `many`: servers have names of their own.
    /// Errors: UsageError.
    [[nodiscard]] bus::PublishOptions options(const std::string& server, bool many = false) const;
    [[nodiscard]] std::uint64_t check_spool() const;
    /// Null: nothing is published. Errors: UsageError.
    [[nodiscard]] std::unique_ptr<bus::BusOutput>
    open(const std::string& server, bus::Patience patience, bool many = false) const;
};

/// Waits for what is not acknowledged, and says on standard error what is missing. Returns whether all
/// is there.
[[nodiscard]] bool finish_publishing(sink::OutputFile& bus);

} // namespace tw::cli

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags about the live page.
struct HttpFlags {
    std::vector<std::string> addresses; ///< empty: no page
    std::vector<std::string> hosts;
    std::string token_file; ///< empty: the one in the state folder
    bool open_reading = false;
    std::string recordings; ///< folder; empty: the page records nothing

    void add_to(CLI::App& command);
    /// Those of a page that only shows; `about`: what --http serves.
    void add_access(CLI::App& command, const std::string& about);

    [[nodiscard]] bool on() const { return !addresses.empty(); }

    /// Where the page is to be. Errors: UsageError.
    [[nodiscard]] std::vector<web::HttpAddress> where() const;

    /// Binds all of that. Errors: relay::NotYetError for what may be there later; UsageError.
    [[nodiscard]] std::vector<web::Listening> listen() const;

    [[nodiscard]] web::AdminOptions options() const;

    /// What the page may record; nothing: it may not. Errors: UsageError for what is no folder that may
    /// be written to, and without a page.
    [[nodiscard]] std::optional<pipeline::PageRecordingOptions>
    page_recordings(const sink::DemoOptions& demos) const;

    /// Errors: UsageError.
    [[nodiscard]] process::PageToken token(const std::filesystem::path& state_folder) const;
};

} // namespace tw::cli
