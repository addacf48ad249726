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

namespace tw::world {

// Comparisons of four or sixteen numbers at a time. Bit i of a result is for index i.

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

/// Bit mask of the indices at which four numbers are equal.
template <typename Number>
std::uint32_t same_of_four(const Number* left, const Number* right) {
    const __m128i same = _mm_cmpeq_epi32(load_four(left), load_four(right));
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(same)));
}

/// Bit mask of the indices at which sixteen numbers are equal.
template <typename Number>
std::uint32_t same_of_sixteen(const Number* left, const Number* right) {
    const auto same = [&](std::size_t from) {
        return _mm_cmpeq_epi32(load_four(left + from), load_four(right + from));
    };
    const __m128i low = _mm_packs_epi32(same(0), same(kFour));
    const __m128i high = _mm_packs_epi32(same(2 * kFour), same(3 * kFour));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
}

/// Bit mask of the indices at which left − right = `distance`, for four numbers.
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

/// The number of an item's ints that a bit mask covers, one bit for each int.
inline constexpr std::size_t kMaskedInts = 32;

/// Bit mask of the differing ints among the first kMaskedInts. Precondition: equal sizes.
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

/// The place of an item in several bases: the base's number and the item's index there.
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

/// A range of consecutive items that are equal in two snapshots.
struct SharedRun {
    std::uint32_t base = 0; ///< BasePlace of the first item in the base
    std::uint32_t item = 0; ///< index of the first item in the other snapshot
    std::uint32_t count = 0;

    friend bool operator==(const SharedRun&, const SharedRun&) = default;
};

/// The items that a snapshot shares with base snapshots, and the items that it does not share.
struct SharedItems {
    std::vector<SharedRun> runs{};
    /// Indices of items that `base` lacks or has with other values.
    std::vector<std::uint32_t> others{};

    /// Compares `items` with a base. Appends to `runs` and replaces `others`. `number`: the base's
    /// number. Compares ints in blocks, so nearly equal snapshots are cheap.
    void find(const snapshot::SnapshotView& base, std::size_t number,
              const snapshot::SnapshotView& items);
};

/// One session's snapshot of a tick with its context.
struct View {
    std::uint32_t session = 0;
    std::int32_t version = 0; ///< the client's version; 0: vanilla
    /// The view's items without those listed in `shared`.
    snapshot::SnapshotView items{};
    /// The base snapshots of a tick's views. The first one has the items that most views have.
    std::span<const snapshot::SnapshotView> bases{};
    std::span<const SharedRun> shared{};    ///< items shared with the bases, ascending
    bool translated = false;                ///< the view's client ids are not the server's
    std::optional<std::uint16_t> own{};     ///< client id of the viewer
    std::optional<std::uint16_t> watched{}; ///< client id that the viewer spectates
    bool watches = false;                   ///< the viewer's camera is not at its own tee
    bool scoreboard = false;                ///< the client shows the scoreboard
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< the client's protocol
    /// The players; null if the items contain them: in 0.6, and after SevenAsSix translated a 0.7
    /// view.
    const record::Roster* roster = nullptr;
    /// For each item, a bit mask of the ints that the view does not know, as in record::SeenBy;
    /// empty if it knows all.
    std::span<const std::uint32_t> untold{};

    /// With this bit, an item's place is a BasePlace; without it, an index into `items`.
    static constexpr std::uint32_t kOfBase = std::uint32_t{1} << 31U;

    /// Whether the view certainly has a client id for each player, so that the id −1 means "no
    /// player". Never certain for 0.7.
    [[nodiscard]] bool knows_all() const {
        return !translated && dialect == snapshot::Dialect::six;
    }

    [[nodiscard]] bool shares() const { return !bases.empty(); }

    /// The place of the item with this key; nullopt if there is none.
    [[nodiscard]] std::optional<std::uint32_t> find(snapshot::ItemKey key) const;

    [[nodiscard]] snapshot::ItemView at(std::uint32_t place) const {
        const std::uint32_t of_base = place & ~kOfBase;
        return place == of_base ? items[place]
                                : bases[BasePlace::base_of(of_base)][BasePlace::index_of(of_base)];
    }

    /// The places of all items of a type, sorted by id.
    [[nodiscard]] std::vector<std::uint32_t> places_of(std::uint16_t type) const;
};

/// Makes a view of a snapshot. Finds out from the items which client the snapshot was made for.
/// Client ids in the view are those of the snapshot.
[[nodiscard]] View read_view(std::uint32_t session, std::int32_t version,
                             const snapshot::SnapshotView& items);

/// Like read_view(), for 0.7. `roster`: the players, whom 0.7 sends in messages; null if unknown.
[[nodiscard]] View read_seven_view(std::uint32_t session, std::int32_t version,
                                   const snapshot::SnapshotView& items,
                                   const record::Roster* roster);

/// Whether `left` has more information than `right`. Criteria in this order: 0.6 before 0.7, has
/// ids for all players, newer version, lower session number. This is a total order, because a
/// session has only one view per tick.
[[nodiscard]] bool says_more(const View& left, const View& right);

/// The class of a client version. Servers build some objects differently for clients before certain
/// versions (views sheet, sections 4 and 5), so only views of the same class must agree.
[[nodiscard]] int version_class(std::int32_t version);

} // namespace tw::world
