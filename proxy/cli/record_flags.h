#pragma once

#include "proxy/analyze/outcome.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/pipeline/worker.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/json_lines.h"
#include "proxy/wire/message_set.h"
#include "proxy/wire/secrets.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags that `proxy` and `decode` share: where maps are, what is written, what is a failure.
struct RecordFlags {
    std::vector<std::string> maps;
    std::string map_cache;
    std::string output; ///< empty: no records
    std::string items = "changed";
    std::string view = "sessions";
    bool raw = false;
    bool no_messages = false;
    bool show_secrets = false;
    std::vector<std::string> show_commands; ///< chat commands, as written
    std::vector<std::string> fail_on;
    std::string filter;
    std::string console_filter;
    std::vector<std::string> expect;
    std::string summary; ///< file for how the checks ended; empty: none
    std::string pseudonym_key;
    std::string objects_file;
    bool learn_sizes = false;

    void add_to(CLI::App& command);
    /// The folders to look for maps in. Errors: UsageError for what is no folder.
    [[nodiscard]] std::vector<std::filesystem::path> map_folders() const;
    /// What --fail-on names. Errors: UsageError.
    [[nodiscard]] analyze::FailOn failing() const;

    /// Whether anybody looks at single messages: --no-messages keeps them from what is written, not from
    /// what is asked. `written`, `asked`: by others than -o and --expect.
    [[nodiscard]] bool wants_messages(bool written, bool asked) const {
        return ((!output.empty() || written) && !no_messages) || !expect.empty() || asked;
    }

    /// What is known of objects and messages: the tables, and what --objects describes.
    /// Errors: UsageError.
    [[nodiscard]] std::unique_ptr<wire::ModDescription> description() const;
    /// The filter of a flag; nothing when it was not given. Errors: UsageError.
    [[nodiscard]] std::optional<filter::Filter> parse_filter(const std::string& flag,
                                                             const std::string& text,
                                                             const wire::ModDescription& mod) const;
    /// That of --filter. Errors: UsageError; also where nothing but messages passes it, and
    /// --no-messages leaves them out.
    [[nodiscard]] std::optional<filter::Filter>
    output_filter(const wire::ModDescription& mod) const;
    /// What --expect asks for. Errors: UsageError.
    [[nodiscard]] std::vector<filter::Expectation>
    expectations(const wire::ModDescription& mod) const;

    /// The chat commands whose arguments are shown, besides those that are harmless everywhere.
    [[nodiscard]] wire::CommandNames shown_commands() const {
        return wire::CommandNames{show_commands};
    }

    [[nodiscard]] sink::JsonOptions json(const wire::ModDescription& mod) const;
    [[nodiscard]] pipeline::ViewChoice views() const;
};

} // namespace tw::cli

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags that `proxy` and `decode` share: what is written for other programs.
struct ArtifactFlags {
    std::string demo; ///< folder; empty: none
    int demo_version = 6;
    std::string capture;        ///< file or folder; empty: none
    std::string capture_filter; ///< empty: all that it may hold

    void add_to(CLI::App& command);

    [[nodiscard]] bool wants_demos() const { return !demo.empty(); }

    /// Errors: UsageError for what is no folder that may be written to.
    [[nodiscard]] std::optional<sink::DemoOptions> demos(const RecordFlags& records) const;
    /// Errors: UsageError where the capture would hold what must not be shown.
    void check_capture(bool show_secrets) const;
    /// The folders that files are made in.
    [[nodiscard]] std::vector<std::filesystem::path> folders() const;
};

} // namespace tw::cli
