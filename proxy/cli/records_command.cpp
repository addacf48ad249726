#include "proxy/cli/commands.h"
#include "proxy/cli/objects_file.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/line_record.h"
#include "proxy/report/records_check.h"
#include "proxy/report/records_csv.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

volatile std::sig_atomic_t stop_wanted = 0;

struct RecordsFlags {
    std::vector<std::string> paths;
    std::string filter;
    std::vector<std::int64_t> sessions;
    std::string from;
    std::string to;
    std::string output = "-";
    std::vector<std::string> columns;
    std::string objects_file;
    bool follow = false;
    bool verify = false;
};

/// The beginning of a time as records have it, which compares as text.
void check_time(const std::string& flag, const std::string& text) {
    constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    const bool fits =
        text.size() >= 4 && text.size() <= kShape.size() &&
        std::equal(text.begin(), text.end(), kShape.begin(), [](char got, char shape) {
            return shape == 'd' ? got >= '0' && got <= '9' : got == shape;
        });
    if (!text.empty() && !fits) {
        throw UsageError{fmt::format("{} {}: expected a time in UTC or its beginning, for example "
                                     "2026-11-21T20:15",
                                     flag, text)};
    }
}

std::optional<filter::Filter> parse_filter(const RecordsFlags& flags) {
    if (flags.filter.empty()) {
        return std::nullopt;
    }
    snapshot::ObjectSet objects;
    if (!flags.objects_file.empty()) {
        read_objects_file(flags.objects_file, objects);
    }
    auto parsed = filter::Filter::parse(flags.filter, {.objects = objects.custom()});
    if (!parsed) {
        throw UsageError{fmt::format("--filter '{}': {}", flags.filter, parsed.error().message)};
    }
    if (const auto key = filter::key_of_no_line(*parsed); !key.empty()) {
        throw UsageError{
            fmt::format("--filter '{}': {} does not stand in records", flags.filter, key)};
    }
    return *std::move(parsed);
}

/// Which lines of a recording are wanted.
class Selection {
  public:
    explicit Selection(const RecordsFlags& flags)
        : sessions_{flags.sessions.begin(), flags.sessions.end()}, from_{flags.from}, to_{flags.to},
          filter_{parse_filter(flags)} {
        check_time("--from", from_);
        check_time("--to", to_);
    }

    /// True: everything is wanted, whatever it is.
    [[nodiscard]] bool all() const {
        return sessions_.empty() && from_.empty() && to_.empty() && !filter_;
    }

    [[nodiscard]] bool wants(std::string_view line) {
        const auto head = filter::read_head(line);
        return head && (sessions_.empty() || sessions_.contains(head->session)) &&
               head->time >= from_ && (to_.empty() || head->time < to_) &&
               (!filter_ || filter_->matches(line));
    }

  private:
    std::set<std::int64_t> sessions_;
    std::string from_;
    std::string to_;
    std::optional<filter::LineFilter> filter_;
};

/// Of segments read one behind the other: what stands again at the beginning of one was there before.
class Repetitions {
  public:
    void begin_file() { known_.insert(begun_.begin(), begun_.end()); }

    [[nodiscard]] bool is_one(std::string_view line) {
        const bool again = line.ends_with(R"("again":true})");
        const bool event =
            line.substr(0, kHeadBytes).find(R"("type":"session")") != std::string_view::npos;
        if (!again && !event) {
            return false;
        }
        const auto head = filter::read_head(line);
        if (head && head->type == "session") {
            begun_.insert(head->session);
        }
        return again && head && known_.contains(head->session);
    }

  private:
    /// The type stands within these.
    static constexpr std::size_t kHeadBytes = 64;

    std::set<std::int64_t> known_; ///< sessions of files before this one
    std::set<std::int64_t> begun_;
};

/// Where the lines go that are wanted.
class Writer {
  public:
    explicit Writer(const RecordsFlags& flags)
        : file_{open_records_output("--output", flags.output)} {
        if (!flags.columns.empty()) {
            table_.emplace(flags.columns);
            block_ = table_->header();
        }
    }

    void write(std::string_view line) {
        if (table_) {
            table_->append(line, block_);
        } else {
            block_.append(line);
            block_.push_back('\n');
        }
        if (block_.size() >= kBlockBytes) {
            flush();
        }
    }

    void flush() {
        if (!block_.empty()) {
            file_->write(block_);
            block_.clear();
        }
        file_->on_time(sink::RecordTarget::Clock::now());
    }

    [[nodiscard]] bool finish() {
        flush();
        return finish_records("--output", *file_);
    }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{1} << 18U;

    std::unique_ptr<sink::RecordTarget> file_;
    std::optional<report::RecordsCsv> table_;
    std::string block_;
};

int verify(RecordsFiles& files) {
    report::RecordsCheck check;
    files.read(
        {.begin = [&](const std::string& path) { check.begin_file(path); },
         .line = [&](std::string_view line) { check.on_line(line, filter::read_head(line)); },
         .end = [&](const sink::LineReader& reader) { check.end_file(reader); },
         .pause = [] {}});
    fmt::print("{}", check.text());
    return check.whole() ? 0 : kExitFailed;
}

int convert(const RecordsFlags& flags, RecordsFiles& files) {
    Selection selection{flags};
    Writer writer{flags};
    Repetitions repetitions;
    std::string current;
    bool readable = true;
    const RecordsFiles::Use use{.begin =
                                    [&](const std::string& path) {
                                        current = path;
                                        repetitions.begin_file();
                                    },
                                .line =
                                    [&](std::string_view line) {
                                        if (!repetitions.is_one(line) &&
                                            (selection.all() || selection.wants(line))) {
                                            writer.write(line);
                                        }
                                    },
                                .end =
                                    [&](const sink::LineReader& reader) {
                                        readable = all_was_read(current, reader) && readable;
                                    },
                                .pause = [&] { writer.flush(); }};
    if (flags.follow) {
        for (const int signal : {SIGINT, SIGTERM}) {
            std::signal(signal, [](int) { stop_wanted = 1; });
        }
        files.follow(use, [] { return stop_wanted != 0; });
    } else {
        files.read(use);
    }
    return writer.finish() && readable ? 0 : kExitFailed;
}

int run_records(const RecordsFlags& flags) {
    RecordsFiles files{flags.paths, flags.verify ? std::string_view{} : flags.from};
    if (flags.output.ends_with(".csv") && flags.columns.empty()) {
        throw UsageError{"a table needs --columns, for example --columns t,tick,items.player"};
    }
    if (flags.verify) {
        return verify(files);
    }
    return convert(flags, files);
}

} // namespace

Action add_records_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("records", "Read recordings back: choose, convert, follow, verify");
    auto flags = std::make_shared<RecordsFlags>();
    auto settings = std::make_shared<Settings>(*command);
    command
        ->add_option("file", flags->paths,
                     "Files of records, compressed or not, or folders with segments; - means "
                     "standard input")
        ->type_name("FILE")
        ->required();
    command
        ->add_option("--filter", flags->filter,
                     "Only records that match, for example 'snapshot and tick > 500' "
                     "(proxy/filter/FILTERS.md); of items it sees those that are listed")
        ->type_name("EXPRESSION");
    command->add_option("--session", flags->sessions, "Only of this session (repeatable)")
        ->type_name("NUMBER")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command
        ->add_option("--from", flags->from,
                     "Only from this time on: UTC, or its beginning, as 2026-11-21T20:15")
        ->type_name("TIME");
    command->add_option("--to", flags->to, "Only before this time")->type_name("TIME");
    command
        ->add_option("-o,--output", flags->output,
                     "Where they go; - means standard output, a name that ends in .zst is "
                     "compressed")
        ->type_name("FILE")
        ->capture_default_str();
    command
        ->add_option("--columns", flags->columns,
                     "Write a table (CSV) of these keys; with keys of items, as items.player, a "
                     "row for each item")
        ->type_name("KEY,...")
        ->delimiter(',');
    command
        ->add_option("--objects", flags->objects_file,
                     "A mod's snapshot objects, as JSON, whose fields --filter names "
                     "(snapshot/OBJECTS.md)")
        ->type_name("FILE");
    CLI::Option* const follow =
        command->add_flag("-f,--follow", flags->follow,
                          "At the end wait for more, also in the next segments, until Ctrl-C");
    command
        ->add_flag("--verify", flags->verify,
                   "Only check: whole lines, order, missing segments, and what the records say is "
                   "missing; exit with 3 if anything is")
        ->excludes(follow);
    return [flags, settings] {
        settings->complete();
        return run_records(*flags);
    };
}

} // namespace tw::cli
