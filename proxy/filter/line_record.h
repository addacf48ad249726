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

/// Texts that a line must contain to match a filter: keys, and texts that the filter compares with.
/// This check alone rejects most lines that do not match.
class RequiredTexts {
  public:
    explicit RequiredTexts(const Program& program);

    /// Returns false if the line cannot match; true if it may.
    [[nodiscard]] bool are_all_in(std::string_view line) const;

  private:
    std::vector<std::string> keys_;
    std::vector<std::string> texts_; ///< a line may contain them with JSON escapes
};

/// Whether the text contains the part, which has at least two bytes.
[[nodiscard]] bool holds(std::string_view text, std::string_view part);

/// The values at the start of each line of a recording.
struct LineHead {
    std::string_view time; ///< the record's time, without quotes
    std::string_view type;
    std::int64_t session = 0;
};

/// Reads the head of a line; nullopt if the line is no record. Reads only a few dozen bytes of
/// lines written by twscope; lines with another order of keys take longer.
[[nodiscard]] std::optional<LineHead> read_head(std::string_view line);

/// Quick check whether a line is a complete record. After a crash, a torn line may contain another
/// line or zeros.
[[nodiscard]] bool is_record(std::string_view line);

/// Full check whether a line of unknown origin is a complete record: one line of well-formed JSON,
/// which can safely be written between other records.
[[nodiscard]] bool is_sound_record(std::string_view line);

/// Whether a line of a recording matches the filter, with the same result as for the record that
/// was written as this line. Data that the line does not contain, such as unchanged items, cannot
/// match.
[[nodiscard]] bool matches_line(const Filter& filter, std::string_view line);
/// Like the function above; also passes the values that comparisons received to the observer.
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

/// Whether the line has at least one of the filter's keys, not counting keys that all lines have.
/// True if the filter has no other keys.
[[nodiscard]] bool concerns_line(const Filter& filter, std::string_view line);

/// Finds a key of the filter that lines never contain, so that the filter cannot match any line;
/// empty if there is none.
[[nodiscard]] std::string_view find_impossible_key(const Filter& filter);

/// Passes the values of a dotted key of a line or an item to the visitor; a list gives several
/// values. Returns true if the visitor had enough.
bool visit_line(std::string_view json, std::string_view key, ValueVisitor& visitor);
bool visit_line(JsonMembers& members, std::string_view key, ValueVisitor& visitor);
/// Passes the count of a finding in a summary line to the visitor; zero if the line does not list
/// it.
bool visit_finding_count(std::string_view line, std::string_view finding, ValueVisitor& visitor);

} // namespace tw::filter
