#include "proxy/cli/inspect_flags.h"

#include "proxy/cli/objects_file.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/keys.h"
#include "proxy/record/findings.h"
#include "proxy/sink/split_lines.h"
#include "proxy/store/retention.h"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::cli {

namespace {

constexpr const char* kRaw = "raw";

/// Sets the options that the words of --items choose.
/// Errors: UsageError for words that exclude each other.
void set_item_options(const std::vector<std::string>& words, sink::JsonOptions& json) {
    using Items = sink::ItemChoice;
    std::set<std::string> choices{words.begin(), words.end()};
    const bool is_raw = choices.erase(kRaw) != 0;
    if (choices.size() > 1 || (is_raw && choices.contains("none"))) {
        throw usage_error("--items {}: expected none, changed or all, and after the last two also "
                          "raw: all,raw",
                          fmt::join(words, ","));
    }
    json.items = choices.contains("none")  ? Items::none
                 : choices.contains("all") ? Items::all
                                           : Items::changed;
    json.raw = json.raw || is_raw;
}

void add_record_flags(Command& command, RecordFlags& flags) {
    flags.maps_and_objects.add_to(
        command, ": NAME.map, NAME_CRC.map or NAME_SHA256.map, there or in its maps/ or "
                 "downloadedmaps/");
    command.add("--map-cache", &flags.map_cache, "DIR",
                "Folder to keep maps in that clients download from the server; also searched");
    command.add("-o,--output", &flags.output, "FILE",
                "Write records as JSON lines; - means standard output");
    Flag& items = command.add_list(
        "--items", [&flags](const Texts& words) { set_item_options(words, flags.config.json); },
        "WHICH",
        "Items of each snapshot or world to write; raw adds their raw ints: changed,raw or "
        "all,raw");
    items.allowed_words = {"none", "changed", "all", kRaw};
    items.default_text = "changed";
    using Views = pipeline::ViewChoice;
    command.add_choice<Views>(
        "--view", flags.config.views, "WHICH",
        {{"sessions", Views::sessions}, {"world", Views::world}, {"both", Views::both}},
        "Game to show: each session's own view, one world merged from all sessions of a server, or "
        "both");
    command.add_switch("--raw", flags.config.json.raw, {}).replacement = "--items raw";
    command.add_number("--max-line", &flags.config.json.max_line_bytes, sink::kMinLineLimit,
                       sink::kMaxLineBytes,
                       "Split snapshots and worlds whose line of JSON would be longer than this "
                       "into several records (docs/record.md)",
                       "BYTES");
    command.add_switch("--no-messages", flags.config.json.messages,
                       "Omit individual messages from records and demos; --expect still sees them",
                       false);
    command.add_switch("--show-secrets", flags.config.json.show_secrets,
                       "Write passwords, the remote console, codes and whispers in clear text "
                       "instead of [redacted]");
    command.add_list(
        "--show-commands",
        [&flags](const Texts& names) { flags.config.shown_commands = wire::CommandNames{names}; },
        "NAME,...",
        "Also show the arguments of these chat commands, by name without the slash; 'all' for "
        "every command (repeatable)");
}

void add_inspection_flags(Command& command, RecordFlags& flags) {
    command.add("--filter", &flags.filter, "EXPRESSION",
                "Write only matching records, for example 'snapshot and tick > 500' "
                "(proxy/filter/FILTERS.md)");
    command.add("--console-filter", &flags.console_filter, "EXPRESSION",
                "Show only matching records on the console, for example 'session == 3'");
    command.add("--pseudonyms", &flags.config.pseudonym_key, "SECRET",
                "Replace client addresses by pseudonyms derived from this secret; the same secret "
                "gives the same names");
    add_learn_sizes_flag(command, flags.config.inspect.learn_sizes);
    command.dependent_flags.push_back({.flags = {"--items", "--filter"},
                                       .one_of = {"--output", "--bus", "--nats"},
                                       .is_error = false});
}

template <typename Condition>
Condition parse_condition(const std::string& flag, const std::string& text, bool show_secrets,
                          const wire::ModDescription& mod) {
    auto parsed = Condition::parse(
        text, {.show_secrets = show_secrets, .described = filter::types_of_mod(mod)});
    if (!parsed) {
        throw usage_error("{} '{}': {}", flag, text, parsed.error().message);
    }
    return *std::move(parsed);
}

} // namespace

void add_learn_sizes_flag(Command& command, bool& learn_sizes) {
    command.add_switch("--learn-sizes", learn_sizes,
                       "Decode with object sizes inferred from the server's snapshots, instead of "
                       "dropping what clients would drop");
}

void CaptureFlags::add_to(Command& command) {
    command
        .add("captures", &paths, "CAPTURE...",
             "Capture files, demos (.demo), or folders of segments; - means a capture on "
             "standard input")
        .is_required = true;
    add_source_flags(command);
}

void CaptureFlags::add_source_flags(Command& command, const std::string& verb) {
    command.add("--server", &server, "[ADDRESS]:PORT",
                verb + " only this server's traffic (by default, servers are recognised by what "
                       "they send)");
    add_memory_flag(command, memory_mib);
}

std::vector<std::string> list_capture_files(const std::vector<std::string>& paths) {
    std::vector<std::string> all;
    for (const std::string& path : paths) {
        std::error_code ignored;
        if (!std::filesystem::is_directory(path, ignored)) {
            if (const std::string hint = file_type_hint(path, FileType::capture); !hint.empty()) {
                throw usage_error("{}: contains no traffic{}", path, hint);
            }
            all.push_back(path);
            continue;
        }
        const std::size_t before = all.size();
        const auto segments = store::list_segments(path);
        for (const store::Segment& segment : segments) {
            if (segment.is_capture()) {
                all.push_back((std::filesystem::path{path} / segment.file).string());
            }
        }
        if (all.size() == before) {
            throw usage_error("{}: contains no capture segments; {}", path,
                              segments.empty() ? "name the captures in it"
                                               : "for records, use 'twscope records'");
        }
    }
    return all;
}

void add_memory_flag(Command& command, std::size_t& memory_mib) {
    command.add_number(
        "--memory", &memory_mib, 16, 1 << 20,
        "Memory budget in MiB for histories, parts and maps; beyond it, the sessions silent for "
        "longest give up theirs, and are verified again from their next full snapshot. Worlds may "
        "take a quarter as much, and at most 96 MiB",
        "MIB");
}

capture::ServerDetector CaptureFlags::server_detector() const {
    capture::ServerDetector detector;
    if (!server.empty()) {
        add_server(detector, server);
    }
    return detector;
}

void add_server(capture::ServerDetector& detector, const std::string& server) {
    const auto where = parse_endpoint(server, "--server", "0.0.0.0");
    detector.add_server(where.port(),
                        server.starts_with(':') ? std::nullopt : std::optional{where.address()});
}

void MapAndObjectFlags::add_to(Command& command, const std::string& maps_help) {
    command.add("--maps", &maps, "DIR", "Folder to search for maps (repeatable)" + maps_help);
    add_objects_flag(command, objects_file);
}

std::vector<std::filesystem::path> MapAndObjectFlags::map_folders() const {
    std::vector<std::filesystem::path> folders;
    for (const std::string& name : maps) {
        folders.push_back(require_folder("--maps", name));
    }
    return folders;
}

std::unique_ptr<wire::ModDescription> MapAndObjectFlags::read_mod_description() const {
    auto mod = std::make_unique<wire::ModDescription>();
    read_objects_file(objects_file, *mod);
    return mod;
}

void RecordFlags::add_to(Command& command) {
    add_record_flags(command, *this);
    add_inspection_flags(command, *this);
    add_check_flags(command);
}

void RecordFlags::add_check_flags(Command& command) {
    command.add("--expect", &expect, "EXPRESSION",
                "Exit with 1 unless a record matches (repeatable); 'never ...' requires that "
                "none match, 'always ...' that all do");
    command.add("--summary", &summary, "FILE",
                "Write the result of each --expect and --fail-on: JUnit XML if the name ends "
                "in .xml, otherwise text");
    command.add_list("--fail-on", fail_on, "ID,...",
                     "Exit with 1 if any of these findings occurs: ids, or a minimum severity "
                     "(info, warning, error)");
}

std::optional<filter::Filter> RecordFlags::parse_filter(const std::string& flag,
                                                        const std::string& text,
                                                        const wire::ModDescription& mod) const {
    return text.empty() ? std::nullopt
                        : std::optional{parse_condition<filter::Filter>(
                              flag, text, config.json.show_secrets, mod)};
}

std::optional<filter::Filter>
RecordFlags::parse_output_filter(const wire::ModDescription& mod) const {
    auto parsed = parse_filter("--filter", filter, mod);
    if (parsed && !config.json.messages && filter::matches_only_messages(parsed->parsed_filter())) {
        throw usage_error(
            "--filter '{}' matches only messages, which --no-messages omits; leave one of them out",
            filter);
    }
    return parsed;
}

std::vector<filter::Expectation>
RecordFlags::parse_expectations(const std::vector<std::string>& texts,
                                const wire::ModDescription& mod) const {
    std::vector<filter::Expectation> expectations;
    for (const std::string& text : texts) {
        expectations.push_back(
            parse_condition<filter::Expectation>("--expect", text, config.json.show_secrets, mod));
    }
    return expectations;
}

pipeline::Config RecordFlags::make_config(const wire::ModDescription& mod,
                                          bool has_other_output) const {
    pipeline::Config completed = config;
    completed.mod = &mod;
    completed.json.objects = &mod.objects;
    completed.filter = parse_output_filter(mod);
    completed.console_filter = parse_filter("--console-filter", console_filter, mod);
    completed.expectations = parse_expectations(expect, mod);
    completed.demos = demo_options();
    completed.capture_filter = parse_filter("--write-filter", capture_filter, mod);
    completed.inspect.emits_message_records =
        ((!output.empty() || has_other_output) && config.json.messages) || !expect.empty() ||
        completed.demos || completed.capture_filter;
    return completed;
}

std::vector<std::filesystem::path> RecordFlags::map_folders() const {
    auto folders = maps_and_objects.map_folders();
    if (!map_cache.empty()) {
        folders.push_back(require_folder("--map-cache", map_cache));
    }
    return folders;
}

std::string_view most_similar_finding(std::string_view word, std::vector<std::string_view> names) {
    std::ranges::transform(record::finding_table(), std::back_inserter(names),
                           &record::FindingInfo::name);
    const auto snapshot_finding = record::find_finding(fmt::format("snapshot.{}", word));
    return snapshot_finding ? record::finding_info(*snapshot_finding).name
                            : filter::most_similar_word(word, names);
}

analyze::FindingsToFailOn parse_findings_to_fail_on(const char* flag,
                                                    const std::vector<std::string>& words) {
    auto parsed = analyze::FindingsToFailOn::parse(words);
    if (!parsed) {
        using enum record::Severity;
        const std::string_view near = most_similar_finding(
            parsed.error(), {record::severity_name(warning), record::severity_name(error),
                             record::severity_name(info)});
        throw usage_error("{} {}: neither a finding nor a severity{}", flag, parsed.error(),
                          near.empty() ? " ('twscope explain' lists them)"
                                       : fmt::format("; did you mean {}?", near));
    }
    return *std::move(parsed);
}

void RecordFlags::add_demo_and_capture_flags(Command& command) {
    command.add("--demo", &demo, "DIR",
                "Write what each client saw to this folder as demos for the game, one per "
                "session and map; with --view world, one per map with all players");
    command.add_choice("--demo-version", demo_version, "NUMBER", {{"4", 4}, {"6", 6}},
                       "Demo version: 6 for DDNet; 4 also for vanilla Teeworlds 0.6, without "
                       "DDNet's own items and messages and clients beyond the 16th");
    command.add("-w,--write", &capture, "FILE",
                "Write the datagrams of all sessions as a pcapng capture, with sessions and "
                "findings as comments; it contains passwords, so it requires --show-secrets");
    command.add("--write-filter", &capture_filter, "EXPRESSION",
                "Write to --write only datagrams with a matching record, for example 'session "
                "== 3' (proxy/filter/FILTERS.md)");
    command.dependent_flags.push_back({{"--demo-version"}, {"--demo", "--http-recordings"}});
    command.dependent_flags.push_back({{"--write-filter"}, {"--write"}});
}

std::optional<demo::DemoOptions> RecordFlags::demo_options() const {
    if (demo.empty()) {
        return std::nullopt;
    }
    return demo::DemoOptions{.folder = require_writable_folder("--demo", demo),
                             .version = demo_version,
                             .messages = config.json.messages,
                             .show_secrets = config.json.show_secrets};
}

void RecordFlags::check_capture_flags() const {
    if (!capture.empty() && !config.json.show_secrets) {
        throw usage_error("--write {}: a capture contains every byte, passwords and whispers "
                          "included, and cannot be redacted; add --show-secrets to allow it",
                          capture);
    }
}

} // namespace tw::cli
