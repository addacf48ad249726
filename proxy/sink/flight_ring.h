#pragma once

#include "proxy/record/records.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace tw::sink {

/// The latest blocks of a capture, in memory that is taken once: a new one takes the place of the
/// oldest. A block has a place that never comes again, so that who reads notices what is gone.
class FlightRing {
  public:
    using Place = std::uint64_t;

    struct Block {
        std::uint32_t session = 0;
        record::Timestamp time = 0;
        std::span<const std::byte> bytes{}; ///< valid until the next push
        Place next = 0;
    };

    /// Memory is only used as it is filled.
    explicit FlightRing(std::size_t bytes);

    /// False: it is larger than all of it.
    bool push(std::uint32_t session, record::Timestamp time, std::span<const std::byte> block);
    /// Forgets what is older.
    void forget_before(record::Timestamp time);

    /// Where the oldest block is, and where the next one will be: places in between are blocks.
    [[nodiscard]] Place begin() const { return begin_; }

    [[nodiscard]] Place end() const { return end_; }

    /// The block at a place, or the oldest one behind it; nothing at the end.
    [[nodiscard]] std::optional<Block> at(Place place) const;

    /// Whether there is a block of this session.
    [[nodiscard]] bool holds(std::uint32_t session) const;

    /// Soon the oldest will make room.
    [[nodiscard]] bool nearly_full() const { return end_ - begin_ >= capacity_ / 8 * 7; }

    /// Blocks that are there.
    [[nodiscard]] std::uint64_t size() const { return pushed_ - dropped_; }

    /// Blocks that were there and are not any more.
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  private:
    struct Head {
        std::uint32_t size = 0; ///< of the block
        std::uint32_t session = 0;
        record::Timestamp time = 0;
    };

    static_assert(sizeof(Head) == 16);

    /// In place of a block: the ring goes on at its beginning.
    static constexpr std::uint32_t kFiller = 0xffffffff;

    [[nodiscard]] Head head_at(Place place) const;
    void put(Place place, const Head& head);
    [[nodiscard]] std::uint64_t length(Place place, const Head& head) const;
    void drop_oldest();
    void make_room(Place until);

    std::size_t capacity_;
    std::unique_ptr<std::byte[]> bytes_; // NOLINT(modernize-avoid-c-arrays): left as it comes
    Place begin_ = 0;
    Place end_ = 0;
    std::uint64_t pushed_ = 0;
    std::uint64_t dropped_ = 0;
};

} // namespace tw::sink
