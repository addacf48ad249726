#pragma once

#include "proxy/sink/json_buffer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// The shortest limit for lines. Nothing but items makes a record longer: a datagram has 1,400
/// bytes, and JSON takes at most six for each.
inline constexpr std::size_t kMinLineLimit = std::size_t{16} << 10U;

/// Appends a record as several lines, none longer than `limit` bytes with its newline, and returns
/// true. Returns false, and appends nothing, if the line is short enough or has nothing that can be
/// split. A single item that is longer than `limit` has a line of its own.
///
/// Layout: each line is a record of its own with all keys of the original, except that `full` is
///         only in the first. `items`, `removed` and `renumbered` are divided among the lines, in
///         their order. Each line ends with `"line":K,"lines":N`, counted from 1.
/// `line`: a record as JsonLines writes it, without a newline.
bool split_line(std::string_view line, std::size_t limit, JsonBuffer& out);

/// Joins records that were split by split_line(). The lines of a record follow each other.
class LineJoiner {
  public:
    using Use = std::function<void(std::string_view line)>;

    /// Takes the next line of a file. Passes on each record as the one line that it was before it
    /// was split. If lines of a record are missing, the others are passed on as they are.
    void take(std::string_view line, const Use& use);

    /// Passes on the lines of an incomplete record. Call this at the end of a file.
    void finish(const Use& use);

  private:
    std::vector<std::string> held_; ///< the first lines of a record
    std::size_t held_bytes_ = 0;
    std::uint32_t lines_ = 0; ///< that the record has in all
};

} // namespace tw::sink
