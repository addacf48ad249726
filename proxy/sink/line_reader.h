#pragma once

#include "proxy/sink/byte_source.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// Reads a recording line by line, compressed or not, in memory of limited size. Frames that are damaged are left out.
class LineReader {
  public:
    /// The longest line: hundreds of times what the largest snapshot takes.
    static constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20U;

    /// "-": standard input. Errors: throws std::system_error when it cannot be opened.
    explicit LineReader(const std::string& path) : source_{path, OnDamage::skip} {}

    /// The next line, without its end; it lives until the next call. False: there is no more, for now.
    [[nodiscard]] bool next(std::string_view& line);

    /// At the end: what stands behind the last line's end.
    [[nodiscard]] std::string_view rest() const {
        return std::string_view{room_.data(), held_}.substr(at_);
    }

    /// How many next() gave.
    [[nodiscard]] std::uint64_t lines() const { return lines_; }

    /// Bytes of lines that were too long, and left out.
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

    [[nodiscard]] const ByteSource& source() const { return source_; }

  private:
    [[nodiscard]] bool fill();

    ByteSource source_;
    std::vector<char> room_ = std::vector<char>(std::size_t{1} << 20U);
    std::size_t at_ = 0;     ///< where the next line begins
    std::size_t held_ = 0;   ///< bytes in `room_`
    std::size_t looked_ = 0; ///< up to here there is no line's end behind `at_`
    bool skipping_ = false;  ///< within a line that is too long
    std::uint64_t lines_ = 0;
    std::uint64_t skipped_ = 0;
};

} // namespace tw::sink
