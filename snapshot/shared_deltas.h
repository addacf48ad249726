#pragma once

#include "snapshot/arena.h"
#include "snapshot/delta.h"
#include "snapshot/parts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::snapshot {

/// Decodes deltas of sessions on the same server. In one tick a server sends all clients the same
/// items in the same order, except items that a client does not see or that are private to it.
/// Bytes that deltas with the same tick and base have in common are decoded once.
///
/// This is faster if such deltas follow each other. A delta without a similar one before it costs
/// an extra copy.
class SharedDeltas {
  public:
    /// Decodes a delta. The result, including errors, is exactly that of decode_delta.
    [[nodiscard]] Result<void> decode(const AssembledDelta& delta, Delta& out,
                                      const AgreedSizes& sizes);

    /// How often decoding was shared since construction.
    struct Counts {
        std::uint64_t shared = 0;  ///< updates copied from an earlier delta, not decoded
        std::uint64_t updates = 0; ///< updates of all deltas that were compared with an earlier one
    };

    [[nodiscard]] const Counts& counts() const { return counts_; }

    /// Memory in use: a few hundred KiB, at most 12 MiB whatever servers send.
    [[nodiscard]] std::size_t memory_bytes() const;

  private:
    /// The start of an update in a delta: the index of its first byte and of its first int.
    struct Place {
        std::uint32_t byte = 0;
        std::uint32_t num = 0;
        DeltaUpdate update{};
    };

    /// Updates in wire order.
    struct Updates {
        std::vector<std::byte> bytes;
        RawVector<std::int32_t> ints;
        std::vector<Place> places; ///< start of each update; the last entry is the end of the last

        [[nodiscard]] std::size_t size() const { return places.size() - 1; }

        void clear();
        [[nodiscard]] std::size_t memory_bytes() const;
        /// Appends consecutive updates with their bytes and ints.
        void append(std::span<const Place> some, std::span<const std::byte> their_bytes,
                    std::span<const std::int32_t> their_ints);
        /// Adds the last entry of `places`.
        void close();
        /// Index of the next update with this key, within kReach of `first`; nullopt if there is
        /// none.
        [[nodiscard]] std::optional<std::size_t> find(ItemKey key, std::size_t first) const;
    };

    enum class State : std::uint8_t {
        unusable,   ///< the slot is empty
        remembered, ///< it holds a delta; the byte offsets of its updates are not computed yet
        ready,
    };

    /// The union of the updates in deltas of one tick and base.
    struct Known {
        Tick tick = 0;
        Tick base = 0;
        AgreedSizes sizes{};
        State state = State::unusable;
        int widenings = 0;
        Updates updates{};
    };

    /// An update that is not in Known: its position in the delta, and the known update it precedes.
    struct Unknown {
        Place begin{};
        std::uint32_t end_byte = 0;
        std::size_t before = 0;
    };

    class Reader;

    /// Number of pairs of tick and base kept at a time. Several are needed, because clients
    /// acknowledge snapshots after different delays and so have different bases.
    static constexpr std::size_t kSlots = 16;
    /// How many known updates may be skipped to find a delta's next update. The delta lacks items
    /// that its client does not see.
    static constexpr std::size_t kReach = 32;
    /// Unknown updates of a delta are added to Known only if there are at least this many.
    static constexpr std::size_t kWorthWidening = 3;
    static constexpr int kMaxWidenings = 8;

    [[nodiscard]] Known& known_of(const AssembledDelta& delta);
    static void remember(std::span<const std::byte> body, const Delta& delta, Known& known);
    [[nodiscard]] static bool make_ready(Known& known);
    [[nodiscard]] bool decode_with(const Known& known, std::span<const std::byte> body, Delta& out);
    void widen(Updates& known, std::span<const std::byte> body, const Delta& delta);

    std::array<Known, kSlots> known_;
    std::vector<Unknown> unknown_; ///< unknown updates of the last decoded delta
    Updates wider_;                ///< buffer, a member only to reuse its memory
    Counts counts_;
};

} // namespace tw::snapshot
