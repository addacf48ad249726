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

/// Decodes the deltas of sessions that are shown the same game. A server tells all its clients the same
/// about a tick, in the same order, except for what they do not see and what is for them alone. What
/// deltas of one tick and base have in common, byte for byte, is decoded once.
///
/// It pays where such deltas follow each other; a delta that no other one resembles was copied for
/// nothing.
class SharedDeltas {
  public:
    /// Gives exactly what decode_delta gives, errors included.
    [[nodiscard]] Result<void> decode(const AssembledDelta& delta, Delta& out,
                                      const AgreedSizes& sizes);

    /// Since construction.
    struct Counts {
        std::uint64_t shared = 0;  ///< updates taken over from an earlier delta
        std::uint64_t updates = 0; ///< of all deltas that were compared with an earlier one
    };

    [[nodiscard]] const Counts& counts() const { return counts_; }

    /// What it keeps: a few hundred KiB, and 12 MiB at most, whatever servers send.
    [[nodiscard]] std::size_t memory_bytes() const;

  private:
    /// Where an update begins: the byte and the int of its type.
    struct Place {
        std::uint32_t byte = 0;
        std::uint32_t num = 0;
        DeltaUpdate update{};
    };

    /// Updates in the order of the wire.
    struct Updates {
        std::vector<std::byte> bytes;
        RawVector<std::int32_t> ints;
        std::vector<Place> places; ///< plus one behind the last, for its end

        [[nodiscard]] std::size_t size() const { return places.size() - 1; }

        void clear();
        [[nodiscard]] std::size_t memory_bytes() const;
        /// Appends some that stand one behind the other, with all their bytes and ints.
        void append(std::span<const Place> some, std::span<const std::byte> their_bytes,
                    std::span<const std::int32_t> their_ints);
        /// Notes where the last one ends.
        void close();
        /// The next from `first` on with this key, no further than kReach.
        [[nodiscard]] std::optional<std::size_t> find(ItemKey key, std::size_t first) const;
    };

    enum class State : std::uint8_t {
        unusable,   ///< nothing to compare with
        remembered, ///< a whole delta; where its updates begin in the bytes is not known yet
        ready,
    };

    /// What deltas of one tick and base say, each update once.
    struct Known {
        Tick tick = 0;
        Tick base = 0;
        AgreedSizes sizes{};
        State state = State::unusable;
        int widenings = 0;
        Updates updates{};
    };

    /// An update that was not known: where it stands in its delta, and in front of which known one.
    struct Unknown {
        Place begin{};
        std::uint32_t end_byte = 0;
        std::size_t before = 0;
    };

    class Reader;

    /// Pairs of tick and base that are kept at a time: clients acknowledge late, each in its own way.
    static constexpr std::size_t kSlots = 16;
    /// How far behind the last update the next one is looked for: clients lack what they do not see.
    static constexpr std::size_t kReach = 32;
    /// Fewer unknown updates are not worth making known.
    static constexpr std::size_t kWorthWidening = 3;
    static constexpr int kMaxWidenings = 8;

    [[nodiscard]] Known& known_of(const AssembledDelta& delta);
    static void remember(std::span<const std::byte> body, const Delta& delta, Known& known);
    [[nodiscard]] static bool make_ready(Known& known);
    [[nodiscard]] bool decode_with(const Known& known, std::span<const std::byte> body, Delta& out);
    void widen(Updates& known, std::span<const std::byte> body, const Delta& delta);

    std::array<Known, kSlots> known_;
    std::vector<Unknown> unknown_; ///< of the delta that was decoded last
    Updates wider_;                ///< kept for its memory
    Counts counts_;
};

} // namespace tw::snapshot
