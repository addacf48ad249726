#pragma once

#include "proxy/sink/disk.h"
#include "proxy/sink/units.h"

#include <cstdint>

namespace tw::sink {

/// What became of a file that others wrote before.
struct Mending {
    enum class Result : std::uint8_t {
        done,     ///< it ends with a whole unit, or cannot be read and stays as it is
        foreign,  ///< something else is in it
        too_much, ///< it ends with more unfinished compressed data than a live recording ever has
        failed, ///< it could not be written; errno says why, and all that could be read can still be
    };

    Result result = Result::done;
    std::uint64_t cut_bytes = 0; ///< of something unfinished
};

/// Makes the end of a file one that can be written behind: what is unfinished is cut off. But for what can be read
/// of it: a last line that lacks only its end gets it, and the whole units in compressed data without an end become
/// frames of their own. Whenever it is interrupted, the next try finds all that could be read before.
[[nodiscard]] Mending mend_end(Disk& disk, int file, const Units& units, bool compressed);

} // namespace tw::sink
