#pragma once

#include "proxy/analyze/outcome.h"
#include "proxy/capture/capture_sessions.h"
#include "proxy/demo/demo_sink.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/inspect/session.h"
#include "proxy/pipeline/config.h"
#include "proxy/wire/message.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::cli {

struct Command;

// The functions of this header throw UsageError for a flag whose value is not valid.

/// Returns the captures to read, in the order given. A folder stands for its segments, in the order
/// of their start. Errors: UsageError for a folder without segments, and for a file of records.
[[nodiscard]] std::vector<std::string> list_capture_files(const std::vector<std::string>& paths);

/// The flags of the commands that read captures.
struct CaptureFlags {
    std::vector<std::string> paths;
    std::string server; ///< empty if servers are to be recognised
    std::size_t memory_mib = inspect::MemoryBudget::kDefaultBytes >> 20U;

    void add_to(Command& command);
    /// Adds --server and --memory. `verb`: the start of the help of --server.
    void add_source_flags(Command& command, const std::string& verb = "Inspect");

    [[nodiscard]] std::vector<std::string> files() const { return list_capture_files(paths); }

    [[nodiscard]] capture::ServerDetector server_detector() const;

    [[nodiscard]] std::size_t memory_bytes() const { return memory_mib << 20U; }
};

/// Makes the detector accept the traffic of a server, which is given as for --server.
void add_server(capture::ServerDetector& detector, const std::string& server);

void add_memory_flag(Command& command, std::size_t& memory_mib);
void add_learn_sizes_flag(Command& command, bool& learn_sizes);

/// Returns the finding whose name is most similar to a misspelt one; empty if none is similar.
/// `names`: further names that may be returned.
[[nodiscard]] std::string_view most_similar_finding(std::string_view word,
                                                    std::vector<std::string_view> names = {});

/// Parses the words of a flag, each of which is a finding or a severity.
[[nodiscard]] analyze::FindingsToFailOn
parse_findings_to_fail_on(const char* flag, const std::vector<std::string>& words);

struct MapAndObjectFlags {
    std::vector<std::string> maps;
    std::string objects_file;

    /// `maps_help`: the end of the help of --maps.
    void add_to(Command& command, const std::string& maps_help);
    /// Errors: UsageError for a folder that does not exist.
    [[nodiscard]] std::vector<std::filesystem::path> map_folders() const;
    /// Returns the objects and messages of the game, and those of `objects_file`.
    [[nodiscard]] std::unique_ptr<wire::ModDescription> read_mod_description() const;
};

/// The flags that `proxy` and `decode` share: maps, records, checks, demos and captures.
struct RecordFlags {
    pipeline::Config config; ///< set by flags, except for what make_config() adds
    MapAndObjectFlags maps_and_objects;
    std::string map_cache;
    std::string output; ///< file or folder for records; empty if none are written
    std::vector<std::string> fail_on;
    std::string filter;
    std::string console_filter;
    std::vector<std::string> expect;
    std::string summary; ///< file for the results of the checks; empty if there is none
    std::string demo;    ///< folder; empty if there are no demos
    int demo_version = 6;
    std::string capture;        ///< file or folder; empty if there is no capture
    std::string capture_filter; ///< empty if all datagrams are written

    void add_to(Command& command);
    void add_check_flags(Command& command);
    void add_demo_and_capture_flags(Command& command);
    /// Returns the folders with maps, --map-cache included.
    /// Errors: UsageError if a path is no folder.
    [[nodiscard]] std::vector<std::filesystem::path> map_folders() const;

    [[nodiscard]] analyze::FindingsToFailOn findings_to_fail_on() const {
        return parse_findings_to_fail_on("--fail-on", fail_on);
    }

    /// Parses the filter of a flag. Returns nullopt if `text` is empty.
    [[nodiscard]] std::optional<filter::Filter> parse_filter(const std::string& flag,
                                                             const std::string& text,
                                                             const wire::ModDescription& mod) const;
    /// Parses the filter of --filter.
    /// Errors: UsageError also if --no-messages is given and only messages can match the filter.
    [[nodiscard]] std::optional<filter::Filter>
    parse_output_filter(const wire::ModDescription& mod) const;
    [[nodiscard]] std::vector<filter::Expectation>
    parse_expectations(const std::vector<std::string>& texts,
                       const wire::ModDescription& mod) const;

    /// Returns the options for demos; nullopt if no demos are written. Errors: UsageError for a
    /// folder that cannot be written to.
    [[nodiscard]] std::optional<demo::DemoOptions> demo_options() const;
    /// Errors: UsageError for --write without --show-secrets.
    void check_capture_flags() const;
    /// Returns the configuration that these flags request. `mod` must outlive it.
    /// `has_other_output`: whether an output other than -o needs messages.
    [[nodiscard]] pipeline::Config make_config(const wire::ModDescription& mod,
                                               bool has_other_output) const;
};

} // namespace tw::cli
