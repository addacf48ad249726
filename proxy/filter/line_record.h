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

/// What stands in every line that fulfils a filter, letter by letter: the keys that it has to have, and texts that
/// it compares with. Most lines that do not fulfil it are told by that alone.
class Needles {
  public:
    explicit Needles(const Program& program);

    /// False: the line does not fulfil the filter. True: it may.
    [[nodiscard]] bool are_in(std::string_view line) const;

  private:
    std::vector<std::string> keys_;
    std::vector<std::string> texts_; ///< may stand there with escapes, too
};

/// Whether the text holds this part, of two bytes at least.
[[nodiscard]] bool holds(std::string_view text, std::string_view part);

/// What stands in front of every line of a recording.
struct LineHead {
    std::string_view time; ///< without quotes
    std::string_view type;
    std::int64_t session = 0;
};

/// Reads the front of a line; nothing when it is no record. As twscope writes lines this looks at a few
/// dozen bytes; keys in another order cost more.
[[nodiscard]] std::optional<LineHead> read_head(std::string_view line);

/// Whether a line is a whole record, as far as can be told without reading all of it: what a crash tore may have
/// another line in it, or zeros.
[[nodiscard]] bool is_record(std::string_view line);

/// The same, told by reading all of it: for lines of which nobody knows who wrote them. Only one that is well-formed
/// JSON, and one line, can be handed on among others.
[[nodiscard]] bool is_sound_record(std::string_view line);

/// Whether a line of a recording fulfils the filter: as the record did when it was written, but for
/// what the line does not hold, as the items that did not change.
[[nodiscard]] bool matches_line(const Filter& filter, std::string_view line);
/// The same, telling the observer which values comparisons met.
[[nodiscard]] bool matches_line(const Filter& filter, std::string_view line, Observer& observer);

/// Room to read a line in.
struct LineRoom {
    JsonBrackets brackets;
    JsonMembers members; ///< of the line's item at hand
};

/// The same, asked of many lines, one after the other.
class LineFilter {
  public:
    explicit LineFilter(Filter filter) : filter_{std::move(filter)}, needles_{filter_.program()} {}

    [[nodiscard]] bool matches(std::string_view line);

  private:
    Filter filter_;
    Needles needles_;
    LineRoom room_;
};

/// Whether the line has one of the keys the filter names, not counting those that every line has. True
/// when the filter names none.
[[nodiscard]] bool concerns_line(const Filter& filter, std::string_view line);

/// A key that the filter names and no line has; empty: none. Such a filter would never match.
[[nodiscard]] std::string_view key_of_no_line(const Filter& filter);

/// Hands on what stands under a dotted key of a line or of one of its items: several values where it
/// is a list. True: the visitor had enough.
bool visit_line(std::string_view json, std::string_view key, ValueVisitor& visitor);
bool visit_line(JsonMembers& members, std::string_view key, ValueVisitor& visitor);
/// Hands on how often a line that counts findings counted this one: those that did not occur zero times.
bool visit_finding_count(std::string_view line, std::string_view finding, ValueVisitor& visitor);

} // namespace tw::filter
