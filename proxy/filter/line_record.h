#pragma once

#include "proxy/filter/filter.h"
#include "proxy/filter/json_line.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::filter {

/// The first values of a line of a recording.
struct RecordLineHead {
    std::string_view time; ///< the record's time, without quotes
    std::string_view type;
    std::int64_t session = 0;
};

/// Reads the values at the start of a line; nullopt if the line is not a record. Reads only a few
/// dozen bytes of a line that twscope wrote. A line with another order of keys takes longer.
[[nodiscard]] std::optional<RecordLineHead> read_line_head(std::string_view line);

/// Returns a record's time as Unix time in milliseconds; 0 if the text is not a time.
[[nodiscard]] std::int64_t parse_unix_ms(std::string_view time);

/// Checks quickly whether a line is a complete record. Returns false for a line that a crash has
/// damaged, which may contain zeros or a part of another line.
[[nodiscard]] bool is_record_line(std::string_view line);

/// Checks completely whether a line of unknown origin is a record: one line of well-formed JSON,
/// which can safely be added to a recording.
[[nodiscard]] bool is_valid_record(std::string_view line);

/// Returns whether a line of a recording matches the filter. The result is the same as for the
/// record from which the line was written, except that the line lacks some data, such as unchanged
/// items. Passes each compared value to the observer, if there is one.
[[nodiscard]] bool matches_line(const Filter& filter, std::string_view line,
                                const ValueObserver* observer = nullptr);

/// Matches many lines against one filter, faster than matches_line(). A LineFilter that was parsed
/// for rows matches rows of a table of items. A row has the keys of the item and of the item's
/// line.
class LineFilter {
  public:
    /// Parses a filter for lines; for rows if `scope` is KeyScope::item_row. Returns the errors of
    /// Filter::parse(), and an error for the key size_bytes, which lines do not contain.
    [[nodiscard]] static tl::expected<LineFilter, FilterError>
    parse(std::string_view text, const FilterOptions& options = {},
          KeyScope scope = KeyScope::record);

    [[nodiscard]] bool uses_key(std::string_view key) const;

    /// If the filter compares `name` with an unknown message, returns the most similar message,
    /// such as "sv_kill_msg" for `name == sv_kilmsg`; otherwise empty. An unknown message is not an
    /// error, because other records have names, too.
    [[nodiscard]] const std::string& similar_message() const { return similar_message_; }

    /// Returns whether the line or one of its items may match. Quickly rejects most lines that do
    /// not match, because they lack a key or text of the filter.
    [[nodiscard]] bool may_match(std::string_view line) const;

    [[nodiscard]] bool matches(std::string_view line);
    /// Returns whether the row of this item matches. `line`: the item's line. Precondition: the
    /// filter was parsed for rows.
    [[nodiscard]] bool matches_row(JsonLine& line, JsonObject& item);

  private:
    explicit LineFilter(ParsedFilter parsed);

    ParsedFilter parsed_;
    std::string similar_message_;
    std::vector<std::string> required_texts_; ///< texts in each matching line, perhaps escaped
    JsonLine line_;
};

/// Returns whether the line has at least one of the filter's keys; see Evaluation::has_any_key().
[[nodiscard]] bool has_any_key_in_line(const Filter& filter, std::string_view line);

/// Passes the values of a key of a line to the visitor. Returns true if the visitor wants no more.
bool visit_record(JsonObject& record, std::string_view key, ValueVisitor& visitor);
/// Passes the values of a key of a row's item to the visitor. For the key kRemovedRowKey, passes
/// whether the item has a member of this name.
bool visit_row_item(JsonObject& item, std::string_view key, ValueVisitor& visitor);

} // namespace tw::filter
