#pragma once

#include <algorithm>
#include <cstdint>

namespace tw::bus {

/// How many bytes are asked for at once: as many as the line carries while they are waited for. What is
/// asked for and has not come yet stands before every answer of the bus.
class FetchSize {
  public:
    static constexpr std::int64_t kLeast = std::int64_t{256} << 10U;
    static constexpr std::int64_t kMost = std::int64_t{4} << 20U;
    /// More than a message may have anywhere.
    static constexpr std::int64_t kMessage = std::int64_t{64} << 20U;

    [[nodiscard]] std::int64_t bytes() const { return bytes_; }

    /// So many came, and more were there to be sent.
    void came(std::int64_t bytes, bool more) {
        if (!more) {
            bytes_ = std::min(bytes_, kMost);
        } else if (bytes < bytes_ / 2) {
            bytes_ = std::clamp(bytes_ / 2, kLeast, kMost);
        } else {
            bytes_ = std::clamp(2 * bytes_, kLeast, kMost);
        }
    }

    /// The first message alone is longer: it is asked for alone.
    void too_small() { bytes_ = kMessage; }

    [[nodiscard]] bool is_for_one() const { return bytes_ == kMessage; }

    /// How many messages are asked for.
    [[nodiscard]] int messages(int most) const { return is_for_one() ? 1 : most; }

  private:
    std::int64_t bytes_ = kMost;
};

} // namespace tw::bus
