#pragma once

#include "proxy/relay/clock.h"

#include <cstdint>
#include <optional>

namespace tw::run {

/// Tells where in captured traffic the datagrams are missing that the kernel had no room for.
///
/// The kernel says only how many, and frames that were there before still wait to be read. What it
/// has dropped between two looks is missing among the frames of that time: nothing is missing up to
/// the first of them, and nothing from the first one behind them on. Both places are told of.
class DropWindow {
  public:
    using Timestamp = relay::Timestamp;

    /// So long after a look the frames of its time have been read, where nothing else comes.
    static constexpr Timestamp kSettled = 1'000'000'000;

    explicit DropWindow(Timestamp now) : looked_{now} {}

    /// A look at `total`, what the kernel has dropped since the beginning; time is `now`.
    void look(Timestamp now, std::uint64_t total);

    /// To be asked before a frame of that time is read, or when there is none at that time and was
    /// none for kSettled. How many are missing here and were not told of yet, if a place to tell is
    /// reached: 0 where the last of them may be.
    [[nodiscard]] std::optional<std::uint64_t> reached(Timestamp time);

    [[nodiscard]] bool open() const noexcept { return open_; }

    /// Until when datagrams may be missing; of an open one.
    [[nodiscard]] Timestamp end() const noexcept { return end_; }

  private:
    Timestamp looked_;
    Timestamp begin_ = 0;
    Timestamp end_ = 0;
    std::uint64_t total_ = 0;
    std::uint64_t untold_ = 0;
    bool open_ = false;
    bool entered_ = false; ///< a frame of its time was read
};

} // namespace tw::run
