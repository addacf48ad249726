#include "proxy/sink/finding_lines.h"

#include "proxy/base/clock.h"
#include "proxy/record/findings.h"
#include "proxy/record/terminal_text.h"

#include <utility>

#include <fmt/format.h>

namespace tw::sink {

namespace {

/// Returns whether `time` has passed since `since`, or the clock was set back by that much.
bool has_passed(std::chrono::nanoseconds time, record::Timestamp since, record::Timestamp now) {
    return now - since >= time.count() || since - now >= time.count();
}

} // namespace

std::string clock_text(record::Timestamp time, bool has_date) {
    const std::tm local = base::local_time(time);
    if (!has_date) {
        return base::format_time(local, "%H:%M:%S");
    }
    std::string text = base::format_time(local, "%Y-%m-%dT%H:%M:%S%z");
    return text.insert(text.size() - 2, 1, ':'); // strftime() writes the offset as "+0100"
}

bool is_explainable(std::string_view id) {
    return id.starts_with("snapshot.") &&
           id != record::finding_info(record::FindingId::snapshot_explained).name;
}

/// Returns a line for a finding with its time and player: "12:00:03 error snapshot.crc_mismatch:
/// session 3 (ann), tick 12, …".
std::string FindingLines::line_of(const record::FindingRecord& finding, std::string line,
                                  std::string_view player) const {
    const std::string session = fmt::format("session {}", finding.head.session);
    const std::size_t at = line.find(session);
    if (!player.empty() && at != std::string::npos) {
        line.insert(at + session.size(), fmt::format(" ({})", player));
    }
    return fmt::format("{} {}", clock_text(finding.head.time, has_dates_), line);
}

FindingLines::FindingKindKey FindingLines::kind_of(const record::FindingRecord& finding) const {
    FindingKindKey kind{.id = finding.id,
                        .item = {},
                        .field = std::string{finding.field},
                        .name = std::string{finding.name}};
    // Findings about different item types are of different kinds. A size out of range is an
    // exception: it mostly means that the delta was misread, so the item type is random.
    if (finding.item && finding.id != record::FindingId::snapshot_size_out_of_range) {
        kind.item = finding.item->type.empty() ? fmt::format("type {}", finding.item->type_id)
                                               : std::string{finding.item->type};
    }
    return kinds_.size() < kMaxKinds || kinds_.contains(kind) ? kind
                                                              : FindingKindKey{.id = finding.id};
}

void FindingLines::count_finding(const record::FindingRecord& finding) {
    ++num_by_severity_.at(static_cast<std::size_t>(record::severity_of(finding)));
    FindingIdTotal& total = totals_by_id_[finding.id];
    if (total.count++ == 0) {
        total.first_time = finding.head.time;
        total.session = finding.head.session;
        total.tick = record::fault_begin_tick(finding);
    }
    total.last_time = finding.head.time;
    if (total.sessions.size() <= kMaxSessions) {
        total.sessions.insert(finding.head.session);
    }
}

void FindingLines::add_finding(const record::FindingRecord& finding, std::string_view player) {
    const record::Severity severity = record::severity_of(finding);
    if (severity == record::Severity::info) {
        return;
    }
    count_finding(finding);
    const auto [entry, is_new] = kinds_.try_emplace(kind_of(finding));
    ShownFinding& shown = entry->second;
    const record::Timestamp now = finding.head.time;
    const bool is_known = !is_new && !has_passed(kQuietTime, shown.last_time, now);
    shown.last_time = now;
    if (is_known) {
        ++shown.num_since_line;
        return;
    }
    shown.line = line_of(finding, record::describe_finding(finding), player);
    shown.severity = severity;
    shown.session = finding.head.session;
    shown.tick = finding.tick;
    shown.counted_from = now;
}

void FindingLines::add_explanation(const record::FindingRecord& explained,
                                   std::string_view player) {
    const auto known = std::ranges::find_if(kinds_, [&](const auto& each) {
        return each.first.id == record::FindingId::snapshot_crc_mismatch &&
               each.second.session == explained.head.session && each.second.tick == explained.tick;
    });
    if (known != kinds_.end()) {
        known->second.line =
            line_of(explained, record::describe_explained_mismatch(explained), player);
        known->second.tick.reset(); // prevents a second explanation of the finding
    }
}

std::vector<FindingLines::Line> FindingLines::take_lines(record::Timestamp now, bool all) {
    std::vector<Line> lines;
    for (auto& [kind, shown] : kinds_) {
        const bool is_due = all || has_passed(kCountingTime, shown.counted_from, now);
        std::string text = std::exchange(shown.line, {});
        record::Timestamp time = shown.counted_from;
        if (!text.empty() && shown.num_since_line != 0) {
            text += fmt::format(" (+{} like this)", shown.num_since_line);
        } else if (shown.num_since_line != 0 && is_due) {
            time = shown.last_time;
            text = fmt::format("{} +{} like this: {} {}", clock_text(shown.last_time, has_dates_),
                               shown.num_since_line, record::severity_name(shown.severity),
                               record::finding_info(kind.id).name);
            // For an error of a decoder, kind.name is already a part of the finding's id.
            const bool repeats_id = record::finding_info(kind.id).name.ends_with('.' + kind.name);
            for (const std::string& about :
                 {kind.item, kind.field, repeats_id ? std::string{} : kind.name}) {
                text += about.empty() ? "" : ", " + record::escape_for_terminal(about);
            }
        }
        if (!text.empty()) {
            lines.push_back({.text = std::move(text), .severity = shown.severity, .time = time});
            shown.num_since_line = 0;
            shown.counted_from = now;
        }
    }
    std::erase_if(kinds_, [now](const auto& each) {
        return each.second.num_since_line == 0 &&
               has_passed(kQuietTime, each.second.last_time, now);
    });
    std::ranges::stable_sort(lines, {}, &Line::time);
    return lines;
}

std::vector<FindingLines::Line> FindingLines::take_due_lines(record::Timestamp now) {
    return take_lines(now, false);
}

std::vector<FindingLines::Line> FindingLines::take_all_lines() {
    record::Timestamp now = 0;
    for (const auto& [unused, total] : totals_by_id_) {
        now = std::max(now, total.last_time);
    }
    return take_lines(now, true);
}

std::vector<std::string> FindingLines::make_table(const ExplainCommandMaker& explain) const {
    if (totals_by_id_.empty()) {
        return {};
    }
    const std::size_t width = clock_text(0, has_dates_).size();
    std::vector<std::string> lines{fmt::format("{:30} {:>8}  {:{}}  {:{}}  {:>8}", "finding",
                                               "reported", "first", width, "last", width,
                                               "sessions")};
    for (const record::FindingId id : record::findings_by_importance()) {
        const auto found = totals_by_id_.find(id);
        if (found == totals_by_id_.end()) {
            continue;
        }
        const FindingIdTotal& total = found->second;
        const record::FindingInfo& info = record::finding_info(id);
        lines.push_back(fmt::format(
            "{:30} {:>8}  {}  {}  {:>8}", info.name, total.count,
            clock_text(total.first_time, has_dates_), clock_text(total.last_time, has_dates_),
            fmt::format("{}{}", std::min(total.sessions.size(), kMaxSessions),
                        total.sessions.size() > kMaxSessions ? "+" : "")));
        if (explain && total.tick && is_explainable(info.name)) {
            lines.push_back("    " + explain(total.session, *total.tick));
        }
    }
    if (explain) {
        lines.emplace_back("'twscope explain NAME' says what a finding means, and what causes it.");
    }
    const auto last = std::ranges::max_element(
        totals_by_id_, {}, [](const auto& each) { return each.second.last_time; });
    if (const std::tm time = base::local_time(last->second.last_time);
        time.tm_gmtoff != 0 && !has_dates_) {
        lines.push_back(
            base::format_time(time, "Times are local (UTC%z); those of records are UTC."));
    }
    return lines;
}

} // namespace tw::sink
