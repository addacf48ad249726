#pragma once

#include "proxy/admin/admin.h"
#include "proxy/run/page_recordings.h"
#include "proxy/run/page_token.h"
#include "proxy/sink/demo_sink.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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
    [[nodiscard]] std::vector<admin::HttpAddress> where() const;

    /// Binds all of that. Errors: relay::NotYetError for what may be there later; UsageError.
    [[nodiscard]] std::vector<admin::Listening> listen() const;

    [[nodiscard]] admin::AdminOptions options() const;

    /// What the page may record; nothing: it may not. Errors: UsageError for what is no folder that may
    /// be written to, and without a page.
    [[nodiscard]] std::optional<run::PageRecordingOptions>
    page_recordings(const sink::DemoOptions& demos) const;

    /// Errors: UsageError.
    [[nodiscard]] run::PageToken token(const std::filesystem::path& state_folder) const;
};

} // namespace tw::cli
