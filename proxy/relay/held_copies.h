#pragma once

#include "proxy/relay/ring.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tw::relay {

/// Copies of what a session said before it was proven. The observer gets them when it is, and never
/// hears of one that is not.
class HeldCopies {
  public:
    /// A handshake with its repetitions; one of 0.7 takes 1052 bytes.
    static constexpr std::size_t kBytes = 4096;

    /// Copies that do not fit are counted, and so are all after them: what is left out stands at
    /// the end.
    void add(Timestamp time, Direction direction, std::span<const std::byte> bytes) noexcept {
        const Header header{time, static_cast<std::uint32_t>(bytes.size()), direction};
        const bool full = lost_[0] + lost_[1] != 0;
        if (full || used_ + sizeof header + bytes.size() > kBytes) {
            ++lost_[static_cast<std::size_t>(direction)];
            return;
        }
        std::memcpy(memory_.data() + used_, &header, sizeof header);
        used_ += sizeof header;
        if (!bytes.empty()) {
            std::memcpy(memory_.data() + used_, bytes.data(), bytes.size());
        }
        used_ += bytes.size();
    }

    /// Calls `use(Timestamp, Direction, bytes)` for each, in order.
    template <typename Use>
    void for_each(Use&& use) const {
        for (std::size_t at = 0; at < used_;) {
            Header header{};
            std::memcpy(&header, memory_.data() + at, sizeof header);
            at += sizeof header;
            use(header.time, header.direction, std::span{memory_}.subspan(at, header.length));
            at += header.length;
        }
    }

    /// Counts on behind so many that did not fit.
    void lose(const std::array<std::uint64_t, 2>& lost) noexcept {
        lost_[0] += lost[0];
        lost_[1] += lost[1];
    }

    /// How many did not fit, by direction.
    [[nodiscard]] const std::array<std::uint64_t, 2>& lost() const noexcept { return lost_; }

  private:
    struct Header {
        Timestamp time;
        std::uint32_t length;
        Direction direction;
    };

    std::size_t used_ = 0;
    std::array<std::uint64_t, 2> lost_{};
    std::array<std::byte, kBytes> memory_; // NOLINT(*-member-init): as far as it is used
};

} // namespace tw::relay
