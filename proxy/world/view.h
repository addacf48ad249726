#pragma once

#include "proxy/record/roster.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Numbers of two lists, compared four at a time: bit i is of the i-th.
namespace tw::world {

inline constexpr std::size_t kFour = 4;
inline constexpr std::uint32_t kAllOfFour = 0xf;
inline constexpr std::uint32_t kAllOfSixteen = 0xffff;

#if defined(__SSE2__)

template <typename Number>
__m128i load_four(const Number* from) {
    static_assert(sizeof(Number) == sizeof(std::uint32_t));
    __m128i four;
    std::memcpy(&four, from, sizeof four);
    return four;
}

/// Which are the same.
template <typename Number>
std::uint32_t same_of_four(const Number* left, const Number* right) {
    const __m128i same = _mm_cmpeq_epi32(load_four(left), load_four(right));
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(same)));
}

/// The same of sixteen.
template <typename Number>
std::uint32_t same_of_sixteen(const Number* left, const Number* right) {
    const auto same = [&](std::size_t from) {
        return _mm_cmpeq_epi32(load_four(left + from), load_four(right + from));
    };
    const __m128i low = _mm_packs_epi32(same(0), same(kFour));
    const __m128i high = _mm_packs_epi32(same(2 * kFour), same(3 * kFour));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
}

/// Which are `distance` apart.
inline std::uint32_t apart_of_four(const std::uint32_t* left, const std::uint32_t* right,
                                   std::uint32_t distance) {
    const __m128i apart = _mm_sub_epi32(load_four(left), load_four(right));
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(distance));
    return static_cast<std::uint32_t>(
        _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(apart, wanted))));
}

#else

template <typename Number>
std::uint32_t same_of_four(const Number* left, const Number* right) {
    std::uint32_t same = 0;
    for (std::size_t i = 0; i < kFour; ++i) {
        same |= (left[i] == right[i] ? 1U : 0U) << i;
    }
    return same;
}

template <typename Number>
std::uint32_t same_of_sixteen(const Number* left, const Number* right) {
    std::uint32_t same = 0;
    for (std::size_t i = 0; i < 4 * kFour; i += kFour) {
        same |= same_of_four(left + i, right + i) << i;
    }
    return same;
}

inline std::uint32_t apart_of_four(const std::uint32_t* left, const std::uint32_t* right,
                                   std::uint32_t distance) {
    std::uint32_t apart = 0;
    for (std::size_t i = 0; i < kFour; ++i) {
        apart |= (left[i] - right[i] == distance ? 1U : 0U) << i;
    }
    return apart;
}

#endif

/// As many ints have a bit each.
inline constexpr std::size_t kMaskedInts = 32;

/// Bits of the first kMaskedInts ints that differ. Precondition: both have as many.
inline std::uint32_t differing_ints(std::span<const std::int32_t> left,
                                    std::span<const std::int32_t> right) {
    const std::size_t size = std::min(left.size(), kMaskedInts);
    std::uint32_t bits = 0;
    std::size_t at = 0;
    for (; at + kFour <= size; at += kFour) {
        bits |= (~same_of_four(&left[at], &right[at]) & kAllOfFour) << at;
    }
    for (; at < size; ++at) {
        bits |= (left[at] == right[at] ? 0U : 1U) << at;
    }
    return bits;
}

/// Where an item of some bases stands: which one, and the index there.
class BasePlace {
  public:
    static constexpr std::uint32_t kMostBases = 8;

    [[nodiscard]] static constexpr std::uint32_t make(std::size_t base, std::size_t index) {
        return static_cast<std::uint32_t>(base << kShift | index);
    }

    [[nodiscard]] static constexpr std::size_t base_of(std::uint32_t place) {
        return place >> kShift;
    }

    [[nodiscard]] static constexpr std::size_t index_of(std::uint32_t place) {
        return place & ((1U << kShift) - 1);
    }

  private:
    static constexpr unsigned kShift = 28; ///< snapshots have 1024 items
};

/// Items that two snapshots have alike, one behind the other in both.
struct SharedRun {
    std::uint32_t base = 0; ///< BasePlace of the first one in the one
    std::uint32_t item = 0; ///< its index in the other
    std::uint32_t count = 0;

    friend bool operator==(const SharedRun&, const SharedRun&) = default;
};

/// What of a snapshot another one has alike, and what it does not.
struct SharedItems {
    std::vector<SharedRun> runs{};
    std::vector<std::uint32_t> others{}; ///< indices of items that `base` does not have like this

    /// Appends to `runs`, and replaces `others`. `number`: of the base. Ints are compared in
    /// blocks, so that snapshots that are nearly the same cost an instruction or two for each.
    void find(const snapshot::SnapshotView& base, std::size_t number,
              const snapshot::SnapshotView& items);
};

/// One session's snapshot of a tick, read as a view of the world.
struct View {
    std::uint32_t session = 0;
    std::int32_t version = 0; ///< of its client; 0: vanilla
    /// All its items; of a view that shares those of bases, the others.
    snapshot::SnapshotView items{};
    /// What views of a tick have in common; the first one is what most of them have.
    std::span<const snapshot::SnapshotView> bases{};
    std::span<const SharedRun> shared{};    ///< items of the bases that the view has, too; rising
    bool translated = false;                ///< its client ids are not the server's
    std::optional<std::uint16_t> own{};     ///< the client id it was made for
    std::optional<std::uint16_t> watched{}; ///< whom its client watches
    bool watches = false;                   ///< it looks elsewhere than where its own tee is
    bool scoreboard = false;                ///< its client looks at the scoreboard
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< that its client speaks
    /// Who plays; null where the items tell: in 0.6, and in 0.7 that is told as 0.6 (SevenAsSix).
    const record::Roster* roster = nullptr;
    /// Of item i: bits of its ints that it does not tell, as in record::SeenBy; empty: none.
    std::span<const std::uint32_t> untold{};

    /// Place of an item: an index into `items`, or with this bit a BasePlace.
    static constexpr std::uint32_t kOfBase = std::uint32_t{1} << 31U;

    /// Whether it is sure that no client is unknown to it, so that −1 is nobody. Of 0.7 that shows only
    /// where names were told.
    [[nodiscard]] bool knows_all() const {
        return !translated && dialect == snapshot::Dialect::six;
    }

    [[nodiscard]] bool shares() const { return !bases.empty(); }

    /// Place of the item with this key.
    [[nodiscard]] std::optional<std::uint32_t> find(snapshot::ItemKey key) const;

    [[nodiscard]] snapshot::ItemView at(std::uint32_t place) const {
        const std::uint32_t of_base = place & ~kOfBase;
        return place == of_base ? items[place]
                                : bases[BasePlace::base_of(of_base)][BasePlace::index_of(of_base)];
    }

    /// Places of the items of a type, by id.
    [[nodiscard]] std::vector<std::uint32_t> places_of(std::uint16_t type) const;
};

/// Reads whom a snapshot was made for. The ids are those of the snapshot.
[[nodiscard]] View read_view(std::uint32_t session, std::int32_t version,
                             const snapshot::SnapshotView& items);

/// The same of 0.7, where messages before it say some of it: `roster`, or null.
[[nodiscard]] View read_seven_view(std::uint32_t session, std::int32_t version,
                                   const snapshot::SnapshotView& items,
                                   const record::Roster* roster);

/// Whether `left` says more of the world than `right`: it is of 0.6, knows all players, is of a newer
/// version, or else has the lower number. A total order: no two views of a tick are of one session.
[[nodiscard]] bool says_more(const View& left, const View& right);

/// Servers make some objects in another way for clients before these versions (views sheet,
/// sections 4 and 5): only views of one class must agree.
[[nodiscard]] int version_class(std::int32_t version);

} // namespace tw::world
