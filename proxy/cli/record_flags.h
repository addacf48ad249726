#pragma once

#include "proxy/analyze/outcome.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/pipeline/config.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/wire/message_set.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags that `proxy` and `decode` share: maps, records, and conditions for failure.
struct RecordFlags {
    pipeline::Config config; ///< members that flags set directly; complete() adds the others
    std::vector<std::string> maps;
    std::string map_cache;
    std::string output; ///< empty if no records are written
    std::vector<std::string> fail_on;
    std::string filter;
    std::string console_filter;
    std::vector<std::string> expect;
    std::string summary; ///< file for the results of the checks; empty if there is none
    std::string objects_file;

    void add_to(CLI::App& command);
    /// The folders with maps.
    /// Errors: UsageError if a path is no folder.
    [[nodiscard]] std::vector<std::filesystem::path> map_folders() const;
    /// The findings and severities of --fail-on.
    /// Errors: UsageError.
    [[nodiscard]] analyze::FailOn fail_on_findings() const;

    /// True if message records are needed. --no-messages only leaves them out of the written
    /// records. `written`: an output other than -o writes messages. `asked`: something other than
    /// --expect needs them.
    [[nodiscard]] bool wants_messages(bool written, bool asked) const {
        return ((!output.empty() || written) && config.json.messages) || !expect.empty() || asked;
    }

    /// The standard objects and messages, and those that --objects describes.
    /// Errors: UsageError.
    [[nodiscard]] std::unique_ptr<wire::ModDescription> description() const;
    /// The filter of a flag; nullopt if the flag was not given.
    /// Errors: UsageError.
    [[nodiscard]] std::optional<filter::Filter> parse_filter(const std::string& flag,
                                                             const std::string& text,
                                                             const wire::ModDescription& mod) const;
    /// The filter of --filter.
    /// Errors: UsageError, also if --no-messages is given and only messages can match the filter.
    [[nodiscard]] std::optional<filter::Filter>
    output_filter(const wire::ModDescription& mod) const;
    /// The expectations of --expect.
    /// Errors: UsageError.
    [[nodiscard]] std::vector<filter::Expectation>
    expectations(const wire::ModDescription& mod) const;

    /// Returns the complete configuration of these flags. `mod` must outlive it.
    /// Errors: UsageError.
    [[nodiscard]] pipeline::Config complete(const wire::ModDescription& mod) const;
};

} // namespace tw::cli

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags that `proxy` and `decode` share: demos and captures.
struct ArtifactFlags {
    std::string demo; ///< folder; empty if there are no demos
    int demo_version = 6;
    std::string capture;        ///< file or folder; empty if there is no capture
    std::string capture_filter; ///< empty if all datagrams are written

    void add_to(CLI::App& command);

    [[nodiscard]] bool wants_demos() const { return !demo.empty(); }

    /// The options for demos; nullopt if no demos are written. Errors: UsageError for a folder that
    /// cannot be written to.
    [[nodiscard]] std::optional<sink::DemoOptions> demos(const RecordFlags& records) const;
    /// Returns the complete configuration of these flags and `records`. `mod` must outlive it.
    /// `publishes`: whether an output other than -o writes messages.
    /// Errors: UsageError.
    [[nodiscard]] pipeline::Config complete(const RecordFlags& records,
                                            const wire::ModDescription& mod, bool publishes) const;
    /// Checks the flags of the capture. Errors: UsageError if the capture would contain secrets
    /// that must not be shown.
    void check_capture(bool show_secrets) const;
    /// The folders in which files are created.
    [[nodiscard]] std::vector<std::filesystem::path> folders() const;
};

} // namespace tw::cli
