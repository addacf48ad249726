#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/capture_blocks.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace tw::sink {

/// Datagrams as blocks of a capture, gathered until they are worth handing over.
class CaptureGathering {
  public:
    /// False: not taken.
    using Put = std::function<bool(std::span<const std::byte> blocks)>;

    explicit CaptureGathering(Put put) : put_{std::move(put)} {}

    [[nodiscard]] CaptureBlocks& blocks() { return blocks_; }

    /// The datagram that blocks() were told of.
    void end_datagram();
    /// Hands over what is gathered.
    void flush();
    /// What was said since the last datagram stands behind it.
    void finish(record::Timestamp time);
    /// Forgets what was said since the last datagram.
    void forget();

    /// Datagrams that found no room, since this was asked last.
    [[nodiscard]] std::uint64_t take_lost() { return std::exchange(lost_, 0); }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

    Put put_;
    CaptureBlocks blocks_;
    std::vector<std::byte> gathered_;
    std::uint64_t packets_ = 0; ///< in gathered_
    std::uint64_t lost_ = 0;
};

} // namespace tw::sink
