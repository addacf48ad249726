#pragma once

#include "proxy/filter/filter.h"
#include "proxy/filter/json_line.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::filter {

/// The texts that a line must contain to match a filter: keys, and texts with which the filter compares.
/// A check for these texts rejects most lines that do not match.
class RequiredTexts {
  public:
    explicit RequiredTexts(const FilterProgram& program);

    /// Returns false if the line cannot match; true if it may.
    [[nodiscard]] bool are_all_in(std::string_view line) const;

  private:
    std::vector<std::string> keys_;
    std::vector<std::string> texts_; ///< a line may contain these with JSON escapes
};

/// The values at the start of a line of a recording.
struct RecordLineHead {
    std::string_view time; ///< the record's time, without quotes
    std::string_view type;
    std::int64_t session = 0;
};

/// Reads the head of a line; nullopt if the line is not a record. In a line written by twscope, only a
/// few dozen bytes are read; a line with another order of keys takes longer.
[[nodiscard]] std::optional<RecordLineHead> read_line_head(std::string_view line);

/// Checks quickly whether a line is a complete record. After a crash, a torn line may contain zeros or
/// a part of another line.
[[nodiscard]] bool is_record(std::string_view line);

/// Checks fully whether a line of unknown origin is a complete record: one line of well-formed JSON,
/// which can safely be written between other records.
[[nodiscard]] bool is_sound_record(std::string_view line);

/// Returns whether a line of a recording matches the filter. The result is the same as for the record
/// that was written as this line, except that data missing in the line, such as unchanged items, does
/// not match.
[[nodiscard]] bool matches_line(const Filter& filter, std::string_view line);
/// Like the function above; also passes the values that comparisons received to the observer.
[[nodiscard]] bool matches_line(const Filter& filter, std::string_view line,
                                ValueObserver& observer);

/// Matches many lines against a filter.
class LineFilter {
  public:
    explicit LineFilter(Filter filter)
        : filter_{std::move(filter)}, required_texts_{filter_.program()} {}

    [[nodiscard]] bool matches(std::string_view line);

  private:
    Filter filter_;
    RequiredTexts required_texts_;
    JsonLine line_;
};

/// A condition on one item of a line and the line itself, in the language of filters: selects rows
/// of a table of items.
class RowFilter {
  public:
    /// Errors: as Filter::parse.
    [[nodiscard]] static tl::expected<RowFilter, FilterError>
    parse(std::string_view text, const FilterOptions& options = {});

    /// Whether the condition names this key.
    [[nodiscard]] bool uses_key(std::string_view key) const;

    /// Returns false if no item of the line can match; true if one may.
    [[nodiscard]] bool may_match(std::string_view line) const {
        return required_texts_.are_all_in(line);
    }

    [[nodiscard]] bool matches(JsonLine& line, JsonObject& item);

  private:
    explicit RowFilter(FilterProgram program)
        : program_{std::move(program)}, required_texts_{program_} {}

    FilterProgram program_;
    RequiredTexts required_texts_;
};

/// Returns whether the line has at least one of the filter's keys, apart from keys that all lines have.
/// True if the filter has no other keys.
[[nodiscard]] bool concerns_line(const Filter& filter, std::string_view line);

/// A key of snapshots that lines never contain.
inline constexpr std::string_view kSizeBytes = "size_bytes";

/// Returns a key of the filter that lines never contain, so that the filter cannot match any line; empty
/// if there is none.
[[nodiscard]] std::string_view find_impossible_key(const Filter& filter);

/// Passes the values of a key of a line's object to the visitor. Returns true if the visitor has
/// enough.
bool visit_record(JsonObject& record, std::string_view key, ValueVisitor& visitor);
/// Passes the values of a key of a row's item to the visitor, which include kRowRemoved: true if
/// the item has a member of this name.
bool visit_row(JsonObject& item, std::string_view key, ValueVisitor& visitor);

} // namespace tw::filter
