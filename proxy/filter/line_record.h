#pragma once

#include "proxy/filter/filter.h"
#include "proxy/filter/json_scan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::filter {

/// Texts that each line must contain to match a filter: keys, and texts it compares with. Most
/// non-matching lines are rejected by this check alone.
class RequiredTexts {
  public:
    explicit RequiredTexts(const Program& program);

    /// Returns false if the line cannot match; true if it may.
    [[nodiscard]] bool are_all_in(std::string_view line) const;

  private:
    std::vector<std::string> keys_;
    std::vector<std::string> texts_; ///< the line may contain them with escapes
};

/// Whether the text contains the part, which has at least two bytes.
[[nodiscard]] bool holds(std::string_view text, std::string_view part);

/// The values at the start of each line of a recording.
struct LineHead {
    std::string_view time; ///< without quotes
    std::string_view type;
    std::int64_t session = 0;
};

/// Reads the head of a line; nullopt if it is no record. For lines written by twscope this reads a
/// few dozen bytes; other orders of keys cost more.
[[nodiscard]] std::optional<LineHead> read_head(std::string_view line);

/// Quick check whether a line is a complete record. After a crash, a torn line may contain another
/// line or zeros.
[[nodiscard]] bool is_record(std::string_view line);

/// Full check whether a line of unknown origin is a complete record: one line of well-formed JSON,
/// safe to be passed on among others.
[[nodiscard]] bool is_sound_record(std::string_view line);

/// Whether a line of a recording matches the filter, as its record did when written. Data that the
/// line does not contain, such as unchanged items, cannot match.
[[nodiscard]] bool matches_line(const Filter& filter, std::string_view line);
/// Also reports the values that comparisons received.
[[nodiscard]] bool matches_line(const Filter& filter, std::string_view line, Observer& observer);

/// Buffers for reading a line.
struct LineBuffers {
    JsonBrackets brackets;
    JsonMembers members; ///< members of the current item
};

/// Matches many lines against a filter.
class LineFilter {
  public:
    explicit LineFilter(Filter filter)
        : filter_{std::move(filter)}, required_texts_{filter_.program()} {}

    [[nodiscard]] bool matches(std::string_view line);

  private:
    Filter filter_;
    RequiredTexts required_texts_;
    LineBuffers room_;
};

/// Whether the line has any of the filter's keys, except the keys that all lines have. True if the
/// filter names none.
[[nodiscard]] bool concerns_line(const Filter& filter, std::string_view line);

/// A key of the filter that no line can have, so that the filter would never match; empty if there
/// is none.
[[nodiscard]] std::string_view find_impossible_key(const Filter& filter);

/// Passes the values of a dotted key of a line or an item to the visitor; a list gives several
/// values. Returns true if the visitor had enough.
bool visit_line(std::string_view json, std::string_view key, ValueVisitor& visitor);
bool visit_line(JsonMembers& members, std::string_view key, ValueVisitor& visitor);
/// Passes the count of a finding in a summary line to the visitor; zero if the line does not list
/// it.
bool visit_finding_count(std::string_view line, std::string_view finding, ValueVisitor& visitor);

} // namespace tw::filter
