#include "proxy/sink/console.h"

#include "proxy/record/roster.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::sink {

namespace {

/// Returns the value of an environment variable; empty if it is not set.
std::string_view environment_variable(const char* name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment never changes
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view{} : value;
}

/// Returns a share such as "100%" or "99.9%", rounded down, so that "100%" means all.
std::string share_text(std::uint64_t part, std::uint64_t whole) {
    constexpr std::uint64_t kPerMille = 1000;
    const std::uint64_t share = part * kPerMille / whole;
    return share == kPerMille ? "100%" : fmt::format("{}.{}%", share / 10, share % 10);
}

/// Returns a text such as ", 1 error, 2 warnings"; empty if there are neither. Informational
/// findings do not count.
std::string severe_findings_text(std::uint64_t errors, std::uint64_t warnings) {
    return (errors == 0 ? "" : ", " + record::count_with_noun(errors, "error[s]")) +
           (warnings == 0 ? "" : ", " + record::count_with_noun(warnings, "warning[s]"));
}

} // namespace

BoundedWaitStream::BoundedWaitStream(int descriptor)
    : descriptor_{descriptor}, is_terminal_{::isatty(descriptor) == 1},
      can_redraw_{is_terminal_ && environment_variable("TERM") != "dumb"} {
    constexpr cookie_io_functions_t kWriteOnly{
        .read = nullptr,
        .write = [](void* cookie, const char* text, std::size_t size) -> ssize_t {
            static_cast<BoundedWaitStream*>(cookie)->write(text, size);
            return static_cast<ssize_t>(size); // dropped text is counted and is no error
        },
        .seek = nullptr,
        .close = nullptr};
    file_ = ::fopencookie(this, "w", kWriteOnly);
    if (file_ == nullptr) {
        throw std::system_error{errno, std::system_category(), "open a stream"};
    }
    std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
}

BoundedWaitStream::~BoundedWaitStream() {
    std::fclose(file_);
}

bool BoundedWaitStream::is_colored() const {
    return colors_ == Colors::always || (colors_ == Colors::automatic && can_redraw_ &&
                                         environment_variable("NO_COLOR").empty());
}

bool BoundedWaitStream::log_lines_need_dates() const {
    struct stat facts {};

    return !is_terminal_ && (::fstat(descriptor_, &facts) != 0 ||
                             environment_variable("JOURNAL_STREAM") !=
                                 fmt::format("{}:{}", facts.st_dev, facts.st_ino));
}

void BoundedWaitStream::write(const char* text, std::size_t size) {
    while (size != 0) {
        pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
        if (::poll(&room, 1, static_cast<int>(write_timeout_ms_)) <= 0 ||
            (room.revents & POLLOUT) == 0) {
            break;
        }
        // If poll() reports that a pipe is writable, the pipe has room for at least PIPE_BUF bytes.
        const ssize_t written = ::write(descriptor_, text, std::min<std::size_t>(size, PIPE_BUF));
        if (written < 0 && errno != EINTR) {
            break;
        }
        text += std::max<ssize_t>(written, 0);
        size -= static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }
    dropped_bytes_ += size;
}

std::string cut_to_columns(std::string_view line, std::size_t columns) {
    constexpr std::string_view kPlain = "\033[0m";
    constexpr unsigned kFirstWideLeadByte = 0xE1; // the first byte of U+1100 in UTF-8
    std::size_t used = 0;
    bool coloured = false;
    for (std::size_t at = 0; at < line.size();) {
        if (line[at] == '\033') {
            coloured = !line.substr(at).starts_with(kPlain);
            at = std::min(line.find('m', at), line.size() - 1) + 1;
            continue;
        }
        const auto byte = static_cast<unsigned char>(line[at]);
        used += byte >= kFirstWideLeadByte ? 2 : 1;
        if (used > columns) {
            return std::string{line.substr(0, at)} + (coloured ? std::string{kPlain} : "");
        }
        for (++at; at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U;) {
            ++at;
        }
    }
    return std::string{line};
}

std::size_t terminal_columns(int terminal) {
    constexpr std::size_t kUsual = 80;
    const std::string_view digits = environment_variable("COLUMNS");
    std::size_t columns = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), columns);

    struct winsize size {};

    if (::ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
        return columns == 0 ? size.ws_col : std::min<std::size_t>(columns, size.ws_col);
    }
    return columns == 0 ? kUsual : columns;
}

std::string wrap_words(std::string_view line, std::size_t columns) {
    std::string wrapped;
    std::string current;
    while (!line.empty()) {
        const bool is_blank = current.find_first_not_of(' ') == std::string::npos;
        const bool is_command =
            (is_blank || current.ends_with(':')) && line.starts_with(" twscope ");
        const std::string_view word =
            line.substr(0, is_command ? std::string_view::npos : line.find(' ', 1));
        if (const std::string longer = current + std::string{word};
            is_blank || cut_to_columns(longer, columns) == longer) {
            current = longer;
        } else {
            wrapped += current + '\n';
            current = "   " + std::string{word}; // `word` starts with a fourth space
        }
        line.remove_prefix(word.size());
    }
    return wrapped + current;
}

std::size_t columns_for_wrapping(int descriptor) {
    return ::isatty(descriptor) == 1 ? terminal_columns(descriptor) : std::string::npos;
}

void print_wrapped(std::FILE* stream, const std::string& text) {
    const std::size_t columns = columns_for_wrapping(::fileno(stream));
    const std::string lines = record::escape_lines_for_terminal(text);
    for (std::size_t begin = 0; begin < lines.size();) {
        const std::size_t end = std::min(lines.find('\n', begin), lines.size());
        const std::string line = wrap_words(lines.substr(begin, end - begin), columns) + '\n';
        static_cast<void>(std::fputs(line.c_str(), stream));
        begin = end + 1;
    }
}

void Console::set_tee(std::uint32_t session, Tee tee) {
    const std::lock_guard lock{mutex_};
    tees_.insert_or_assign(session, std::move(tee));
}

void Console::remove_tee(std::uint32_t session) {
    const std::lock_guard lock{mutex_};
    tees_.erase(session);
}

void Console::add_finding(const record::FindingRecord& finding) {
    const std::lock_guard lock{mutex_};
    const auto tee = tees_.find(finding.head.session);
    const std::string_view player = tee == tees_.end() ? "" : std::string_view{tee->second.name};
    if (finding.id == record::FindingId::snapshot_explained) {
        findings_.add_explanation(finding, player);
    } else {
        findings_.add_finding(finding, player);
    }
}

void Console::count_snapshots(std::uint64_t snapshots, std::uint64_t verified) {
    num_snapshots_.fetch_add(snapshots, std::memory_order_relaxed);
    num_unverified_.fetch_add(snapshots - verified, std::memory_order_relaxed);
}

std::string Console::add_color(std::string_view code, std::string text) const {
    return style_.is_colored ? fmt::format("\033[{}m{}\033[0m", code, text) : std::move(text);
}

std::vector<std::string> Console::take_finding_lines(record::Timestamp now, bool all) {
    const std::lock_guard lock{mutex_};
    std::vector<std::string> lines;
    for (FindingLines::Line& each :
         all ? findings_.take_all_lines() : findings_.take_due_lines(now)) {
        lines.push_back(add_color(each.severity == record::Severity::error ? "31" : "33",
                                  std::move(each.text)));
    }
    return lines;
}

std::string Console::take_status_line(record::Timestamp now, double seconds,
                                      const StatusNotes& notes, std::size_t columns) {
    const std::lock_guard lock{mutex_};
    const std::uint64_t snapshots = num_snapshots_.exchange(0);
    const std::uint64_t verified = snapshots - std::min(num_unverified_.exchange(0), snapshots);
    const auto joining = static_cast<std::size_t>(
        std::ranges::count_if(tees_, [](const auto& each) { return each.second.name.empty(); }));
    std::string line = fmt::format(
        "{} {}{}, {}/s{}", clock_text(now, style_.has_dates),
        record::count_with_noun(tees_.size() - joining, "player[s]"),
        joining == 0 ? std::string{} : fmt::format(", {} joining", joining),
        record::count_with_noun(
            static_cast<std::uint64_t>(std::llround(static_cast<double>(snapshots) / seconds)),
            "snapshot[s]"),
        snapshots == 0 ? std::string{}
                       : ", " + add_color(verified < snapshots ? "31" : "32",
                                          share_text(verified, snapshots) + " verified"));
    const std::string findings =
        severe_findings_text(findings_.num_findings(record::Severity::error),
                             findings_.num_findings(record::Severity::warning));
    if (!notes.problem.empty()) {
        line += findings + ", " + add_color("31", notes.problem);
    } else {
        line += findings.empty() ? ", no warnings" : findings;
    }
    const auto fits = [columns](const std::string& text) {
        return cut_to_columns(text, columns) == text;
    };
    if (!notes.recording.empty()) {
        // If the line is too long, leaves out the recording's place, then also the time of day.
        const std::string without_place = notes.recording.substr(0, notes.recording.find(" to "));
        for (const std::string& text :
             {line + " | " + notes.recording, line + " | " + without_place,
              line.substr(line.find(' ') + 1) + " | " + without_place}) {
            if (fits(text)) {
                line = text;
                break;
            }
        }
    }
    // Shows as many players as fit into the line, and the number of the players left out. Leaves
    // out the places of the shown players if that makes room for one more player.
    bool has_places = true;
    for (std::size_t left_out = tees_.size() - std::min(tees_.size(), kMaxTees);
         left_out < tees_.size(); left_out += has_places ? 1 : 0) {
        std::string text = line;
        std::size_t most = tees_.size() - left_out;
        for (auto each = tees_.begin(); most != 0; ++each, --most) {
            const auto& [session, tee] = *each;
            text += " | " + (tee.name.empty() ? fmt::format("session {} {}", session, tee.state)
                                              : add_color("1", tee.name));
            text += has_places && !tee.name.empty() ? ' ' + tee.place : std::string{};
        }
        text += left_out == 0 ? std::string{} : fmt::format(" | and {} more", left_out);
        if (fits(text)) {
            return text;
        }
        has_places = !has_places;
    }
    return cut_to_columns(line, columns);
}

std::vector<std::string> Console::finding_table(const FindingLines::ExplainCommandMaker& explain) {
    const std::lock_guard lock{mutex_};
    return findings_.make_table(explain);
}

void ConsoleSink::on_record(const record::Record& record) {
    if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
        handle_record(**session);
    } else if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
        handle_record(**snapshot);
    } else if (const auto* const* finding = std::get_if<const record::FindingRecord*>(&record)) {
        handle_record(**finding);
    }
}

void ConsoleSink::handle_record(const record::SessionRecord& record) {
    const std::uint32_t session = record.head.session;
    switch (record.event) {
    case record::SessionEvent::open:
        console_->set_tee(session, {.name = {}, .place = {}, .state = "connecting"});
        break;
    case record::SessionEvent::established:
        console_->set_tee(
            session,
            {.name = {}, .place = {}, .state = std::string{record.protocol} + ", joining"});
        break;
    case record::SessionEvent::close:
        console_->remove_tee(session);
        last_shown_times_.erase(session);
        break;
    }
}

void ConsoleSink::handle_record(const record::SnapshotRecord& record) {
    console_->count_snapshots(1, record.rebuilt ? 1 : 0);
    if (!record.rebuilt) {
        return;
    }
    record::Timestamp& shown = last_shown_times_[record.head.session];
    if (record.head.time - shown < record::kNanosecondsPerSecond) {
        return;
    }
    shown = record.head.time;
    if (auto tee = local_player(record)) {
        console_->set_tee(record.head.session, {.name = record::escape_for_terminal(tee->name),
                                                .place = std::move(tee->place),
                                                .state = {}});
    }
}

void ConsoleSink::handle_record(const record::FindingRecord& record) {
    if (record.id == record::FindingId::session_server_silent) {
        return; // SilenceReporter reports a silent server once for all threads
    }
    console_->add_finding(record);
}

} // namespace tw::sink
