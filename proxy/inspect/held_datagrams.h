#pragma once

#include "proxy/record/records.h"
#include "proxy/wire/direction.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace tw::inspect {

/// Datagrams of a connection that is not known yet, kept in their order until something shows what
/// it is. Only captures and taps have them: a session that is forwarded is seen from its start.
class HeldDatagrams {
  public:
    /// Two seconds of inputs; a server in play answers the first of them.
    static constexpr std::size_t kMaxDatagrams = 100;
    static constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;

    struct Held {
        record::Timestamp time = 0;
        wire::Direction direction = wire::Direction::c2s;
        std::vector<std::byte> bytes;
    };

    void hold(record::Timestamp time, wire::Direction direction, std::span<const std::byte> bytes) {
        held_.push_back({time, direction, {bytes.begin(), bytes.end()}});
        bytes_ += bytes.size();
    }

    [[nodiscard]] bool empty() const { return held_.empty(); }

    [[nodiscard]] std::size_t size() const { return held_.size(); }

    /// No more may be held: what they are has to be decided now.
    [[nodiscard]] bool full() const { return held_.size() >= kMaxDatagrams || bytes_ >= kMaxBytes; }

    /// All of them; none is held after that.
    [[nodiscard]] std::vector<Held> take() {
        bytes_ = 0;
        return std::exchange(held_, {});
    }

    [[nodiscard]] std::size_t memory_bytes() const {
        return bytes_ + held_.capacity() * sizeof(Held);
    }

  private:
    std::vector<Held> held_;
    std::size_t bytes_ = 0; ///< of their payloads
};

} // namespace tw::inspect
