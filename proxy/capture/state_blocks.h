#pragma once

#include "proxy/capture/captured.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace tw::capture {

/// Finds what a pcapng file says of sessions (sink/session_state.h) in its bytes, which libpcap reads:
/// that skips such blocks. Keeps no more than was read and not asked for.
class StateBlocks {
  public:
    /// The next bytes of the file.
    void on_bytes(std::span<const std::byte> bytes);

    /// What stands right before this packet of the file, from 0 on; to be asked for all of them in
    /// turn. Null: nothing. Valid until the next call.
    [[nodiscard]] const CapturedState* before(std::uint64_t packet);

    /// Whether the first interface is one of twscope's, also where another program wrote the file anew.
    [[nodiscard]] bool by_twscope() const { return by_twscope_; }

  private:
    /// Type, length and, of a section, the mark that shows its order of bytes.
    static constexpr std::size_t kHead = 8;
    static constexpr std::size_t kSectionHead = 12;

    struct Found {
        std::uint64_t packet = 0; ///< behind it
        CapturedState state;
    };

    [[nodiscard]] std::uint32_t number_at(std::size_t at) const;
    /// Its head is there.
    void begin_block();
    void end_block();
    void look_at_interface(std::span<const std::byte> body);

    bool begun_ = false;
    bool lost_ = false;    ///< these are no blocks of pcapng
    bool swapped_ = false; ///< their order of bytes is not this machine's
    std::array<std::byte, kSectionHead> head_{};
    std::size_t head_size_ = 0;
    std::uint64_t left_ = 0; ///< of the block at hand, behind its head
    bool keeps_ = false;     ///< it is a state, or the first interface
    bool interface_ = false; ///< the latter
    bool interface_seen_ = false;
    bool by_twscope_ = false;
    std::vector<std::byte> body_;
    std::uint64_t packets_ = 0;
    std::deque<Found> found_;
    std::optional<CapturedState> due_;
};

} // namespace tw::capture
