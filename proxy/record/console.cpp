#include "proxy/record/console.h"

#include "proxy/record/json_buffer.h"
#include "proxy/record/own_tee.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::record {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// A character that JSON lets pass and a terminal may obey; length 0 if there is none.
struct Harmful {
    std::size_t length = 0;
    unsigned code_point = 0;
};

/// Looks at the front of well-formed UTF-8: delete, the control characters of ISO 6429's upper half
/// (U+009B begins a sequence as escape and bracket do), line separators, and what turns the
/// direction of writing.
Harmful harmful_at(std::string_view text) {
    const auto byte = [text](std::size_t index) {
        return index < text.size() ? unsigned{static_cast<unsigned char>(text[index])} : 0U;
    };
    if (byte(0) == 0x7f) {
        return {1, 0x7f};
    }
    if (byte(0) == 0xc2 && byte(1) < 0xa0) {
        return {2, byte(1)};
    }
    if (byte(0) == 0xe2 && (byte(1) == 0x80 || byte(1) == 0x81)) {
        const unsigned code_point = 0x2000 + ((byte(1) & 1U) << 6U) + (byte(2) & 0x3fU);
        const bool turns = code_point == 0x200e || code_point == 0x200f ||
                           (code_point >= 0x2028 && code_point <= 0x202e) ||
                           (code_point >= 0x2066 && code_point <= 0x2069);
        return turns ? Harmful{3, code_point} : Harmful{};
    }
    return {};
}

} // namespace

std::string terminal_text(std::string_view text) {
    JsonBuffer json;
    json.append_string(text); // good UTF-8, and nothing below a blank
    std::string_view rest = json.view().substr(1, json.view().size() - 2);
    std::string out;
    while (!rest.empty()) {
        if (rest.starts_with("\\\"")) {
            rest.remove_prefix(1); // a quote is a quote
        } else if (rest.starts_with("\\\\")) {
            out += '\\'; // what looks like an escape here is one
            rest.remove_prefix(1);
        }
        const Harmful harmful = harmful_at(rest);
        if (harmful.length == 0) {
            out += rest.front();
            rest.remove_prefix(1);
        } else {
            out += fmt::format("\\u{:04x}", harmful.code_point);
            rest.remove_prefix(harmful.length);
        }
    }
    return out;
}

std::string describe(const inspect::FindingRecord& record) {
    const inspect::FindingInfo& info = inspect::finding_info(record.id);
    std::string line = fmt::format("{} {}: session {}", inspect::severity_name(info.severity),
                                   info.name, record.head.session);
    if (record.tick) {
        line += fmt::format(", tick {}", *record.tick);
    }
    if (record.item) {
        line += fmt::format(", {} {}",
                            record.item->type.empty() ? fmt::format("type {}", record.item->type_id)
                                                      : std::string{record.item->type},
                            record.item->id);
    }
    if (record.crc_wanted && record.crc_got) {
        line += fmt::format(", checksum {} instead of {}", *record.crc_got, *record.crc_wanted);
    }
    if (!record.name.empty()) {
        line += fmt::format(", {}", terminal_text(record.name));
    }
    line += fmt::format(". {}", info.sentence);
    if (!record.detail.empty()) {
        line += fmt::format(" ({})", terminal_text(record.detail));
    }
    return line;
}

void Console::set_tee(std::uint32_t session, Tee tee) {
    const std::lock_guard lock{mutex_};
    tees_.insert_or_assign(session, std::move(tee));
}

void Console::forget(std::uint32_t session) {
    const std::lock_guard lock{mutex_};
    tees_.erase(session);
}

void Console::add_finding(std::string line, inspect::Severity severity) {
    const std::lock_guard lock{mutex_};
    if (severity == inspect::Severity::info) {
        return;
    }
    ++findings_total_;
    if (findings_.size() < kMaxFindingLines) {
        findings_.push_back(
            colour(severity == inspect::Severity::error ? "31" : "33", std::move(line)));
    } else {
        ++findings_unshown_;
    }
}

void Console::count(std::uint64_t snapshots, std::uint64_t verified) {
    snapshots_.fetch_add(snapshots, std::memory_order_relaxed);
    verified_.fetch_add(verified, std::memory_order_relaxed);
}

std::string Console::colour(std::string_view code, std::string text) const {
    return colours_ ? fmt::format("\033[{}m{}\033[0m", code, text) : std::move(text);
}

std::vector<std::string> Console::lines(inspect::Timestamp now, double seconds) {
    const std::lock_guard lock{mutex_};
    std::vector<std::string> lines{findings_.begin(), findings_.end()};
    findings_.clear();
    if (const auto unshown = std::exchange(findings_unshown_, 0); unshown != 0) {
        lines.push_back(fmt::format("and {} findings more", unshown));
    }
    const auto snapshots = static_cast<double>(snapshots_.exchange(0)) / seconds;
    const auto verified = static_cast<double>(verified_.exchange(0)) / seconds;
    std::string line = fmt::format(
        "{:%H:%M:%S}  {} {}, {:.0f} snapshots/s, {}, {} findings",
        fmt::localtime(static_cast<std::time_t>(now / kSecond)), tees_.size(),
        tees_.size() == 1 ? "session" : "sessions", snapshots,
        colour(verified < snapshots ? "31" : "32", fmt::format("{:.0f} verified", verified)),
        findings_total_);
    std::size_t shown = 0;
    for (const auto& [session, tee] : tees_) {
        if (++shown > kMaxTees) {
            line += fmt::format(" | and {} more", tees_.size() - kMaxTees);
            break;
        }
        line += tee.name.empty() ? fmt::format(" | session {} {}", session, tee.state)
                                 : fmt::format(" | {} {}", colour("1", tee.name), tee.place);
    }
    lines.push_back(std::move(line));
    return lines;
}

void ConsoleTap::on_record(const inspect::Record& record) {
    if (const auto* const* session = std::get_if<const inspect::SessionRecord*>(&record)) {
        see(**session);
    } else if (const auto* const* snapshot = std::get_if<const inspect::SnapshotRecord*>(&record)) {
        see(**snapshot);
    } else if (const auto* const* finding = std::get_if<const inspect::FindingRecord*>(&record)) {
        see(**finding);
    }
}

void ConsoleTap::see(const inspect::SessionRecord& record) {
    const std::uint32_t session = record.head.session;
    switch (record.event) {
    case inspect::SessionEvent::open:
        console_->set_tee(session, {.name = {}, .place = {}, .state = "connecting"});
        break;
    case inspect::SessionEvent::established:
        console_->set_tee(
            session, {.name = {}, .place = {}, .state = "speaks " + std::string{record.protocol}});
        break;
    case inspect::SessionEvent::close:
        console_->forget(session);
        shown_.erase(session);
        break;
    }
}

void ConsoleTap::see(const inspect::SnapshotRecord& record) {
    console_->count(1, record.ok ? 1 : 0);
    if (!record.rebuilt) {
        return;
    }
    inspect::Timestamp& shown = shown_[record.head.session];
    if (record.head.time - shown < kSecond) {
        return;
    }
    shown = record.head.time;
    if (auto tee = own_tee(record)) {
        console_->set_tee(
            record.head.session,
            {.name = terminal_text(tee->name), .place = std::move(tee->place), .state = {}});
    }
}

void ConsoleTap::see(const inspect::FindingRecord& record) {
    const inspect::Severity severity = inspect::finding_info(record.id).severity;
    console_->add_finding(severity == inspect::Severity::info ? std::string{} : describe(record),
                          severity);
}

} // namespace tw::record
