#pragma once

#include "proxy/capture/captured.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace tw::capture {

/// Puts datagrams in the order of their times. Where twscope inspects on several threads, each of them
/// adds what it gathered to the capture of the run, so that what happened at one time stands a tenth of
/// a second apart, or, where a thread is behind, more.
///
/// A newcomer's first datagrams are older than what stands before them on one thread, too: they are
/// shown when its address is proven, and then it gets its number. They stay where they are, unless
/// others have shown that there are several threads.
///
/// What passed between two ends stays in its order, whatever its times are. Where time goes back by
/// more than kWindow, the clock was set back, or another capture begins: nothing is moved across that.
class TimeOrder {
  public:
    static constexpr std::int64_t kWindow = 1'000'000'000; ///< nanoseconds
    /// Of a busy server half a second, and five times what its threads gather. What is beyond these
    /// limits is handed out early.
    static constexpr std::size_t kMaxDatagrams = 32'768;
    static constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

    struct Item {
        CapturedDatagram datagram; ///< its payload and state are those below
        std::vector<std::byte> payload;
        std::optional<CapturedState> state;
        std::size_t file = 0; ///< where it comes from, as whoever put it says
    };

    /// Takes a copy.
    void put(const CapturedDatagram& datagram, std::size_t file);

    /// The next one, once none that comes can stand before it; with `all`, at once. Null: there is none
    /// yet. Valid until the next call.
    [[nodiscard]] const Item* take(bool all);

  private:
    struct Waiting {
        std::int64_t time = 0; ///< its own, or that of the one it may not overtake
        std::size_t ends = 0;  ///< hash of them
        std::unique_ptr<Item> item;
    };

    std::deque<Waiting> waiting_; ///< sorted by time, but for where it goes back
    std::size_t settled_ = 0;     ///< of these, the first ones: time went back behind them
    std::size_t bytes_ = 0;       ///< that they take
    bool several_ = false;        ///< threads wrote it, as who was there before shows
    std::unique_ptr<Item> taken_;
};

} // namespace tw::capture
