#pragma once

#include "proxy/sink/json_buffer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// The longest line that is accepted, in bytes. The line of the largest snapshot is hundreds of
/// times shorter.
inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20U;

/// The lowest limit that can be set for a line's length, in bytes. Records without items are
/// shorter: a datagram has up to 1,400 bytes, and each byte takes at most six bytes in JSON.
inline constexpr std::size_t kMinLineLimit = std::size_t{16} << 10U;

/// Splits a record into several lines of at most `limit` bytes, including the newline, appends the
/// lines to `out` and returns true. Appends nothing and returns false if the line is short enough
/// or cannot be split. An item that is longer than `limit` gets a separate line.
///
/// Layout: each line is a complete record with all keys of the original record, except that `full`
///         is only in the first line. `items`, `removed` and `renumbered` are divided among the
///         lines, in order. Each line ends with `"line":K,"lines":N`; K counts from 1.
/// `line`: a record line that JsonLines made, without its newline.
bool split_line(std::string_view line, std::size_t limit, JsonBuffer& out);

/// Joins records that were split by split_line(). The lines of a record must be consecutive.
class LineJoiner {
  public:
    using LineHandler = std::function<void(std::string_view line)>;

    /// Must be called with each line of a file. Calls `handle_line` with each record as a single
    /// line. If a split record is incomplete, calls `handle_line` with each of its lines instead.
    void add_line(std::string_view line, const LineHandler& handle_line);

    /// Must be called at the end of a file. Calls `handle_line` with each line of an incomplete
    /// record.
    void flush_incomplete_record(const LineHandler& handle_line);

  private:
    std::vector<std::string> held_lines_; ///< the first lines of a record
    std::size_t held_bytes_ = 0;
    std::uint32_t num_lines_ = 0; ///< number of lines of the record
};

} // namespace tw::sink
