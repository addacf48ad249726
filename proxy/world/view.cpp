#include "proxy/world/view.h"

#include "snapshot/objects.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <iterator>
#include <tuple>

namespace tw::world {

using snapshot::SnapshotView;

namespace {

/// The first index at which the two differ; `count` if there is none.
std::size_t first_difference(const std::int32_t* left, const std::int32_t* right,
                             std::size_t count) {
    std::size_t at = 0;
    for (; at + 4 * kFour <= count; at += 4 * kFour) {
        if (const std::uint32_t same = same_of_sixteen(left + at, right + at);
            same != kAllOfSixteen) {
            return at + static_cast<std::size_t>(std::countr_one(same));
        }
    }
    for (; at + kFour <= count; at += kFour) {
        if (const std::uint32_t same = same_of_four(left + at, right + at); same != kAllOfFour) {
            return at + static_cast<std::size_t>(std::countr_one(same));
        }
    }
    while (at < count && left[at] == right[at]) {
        ++at;
    }
    return at;
}

/// The items of a snapshot from some index on.
struct Rest {
    const std::uint32_t* keys = nullptr;
    const std::uint32_t* ends = nullptr;
    std::size_t size = 0;
    std::uint32_t begin = 0; ///< index of the first item's ints

    explicit Rest(const SnapshotView& items)
        : keys{items.keys().data()}, ends{items.ends().data()}, size{items.size()} {}

    void drop(std::size_t count) {
        begin = ends[count - 1];
        keys += count;
        ends += count;
        size -= count;
    }
};

/// The number of leading items with equal keys and sizes.
std::size_t same_run(const Rest& left, const Rest& right) {
    const std::size_t most = std::min(left.size, right.size);
    const std::uint32_t distance = left.begin - right.begin;
    std::size_t count = 0;
    for (; count + kFour <= most; count += kFour) {
        const std::uint32_t same = same_of_four(left.keys + count, right.keys + count) &
                                   apart_of_four(left.ends + count, right.ends + count, distance);
        if (same != kAllOfFour) {
            return count + static_cast<std::size_t>(std::countr_one(same));
        }
    }
    while (count < most && left.keys[count] == right.keys[count] &&
           left.ends[count] - right.ends[count] == distance) {
        ++count;
    }
    return count;
}

} // namespace

void SharedItems::find(const SnapshotView& base, std::size_t number, const SnapshotView& items) {
    others.clear();
    Rest left{base};
    Rest right{items};
    const auto place = [&] { return BasePlace::make(number, base.size() - left.size); };
    const auto index = [&] { return static_cast<std::uint32_t>(items.size() - right.size); };
    while (right.size != 0) {
        while (left.size != 0 && *left.keys < *right.keys) {
            left.drop(1);
        }
        std::size_t count = same_run(left, right);
        if (count == 0) { // missing, or of another size
            others.push_back(index());
            right.drop(1);
        }
        // These items have equal keys and sizes.
        while (count != 0) {
            const std::size_t num_ints = left.ends[count - 1] - left.begin;
            const std::size_t same = first_difference(base.data().data() + left.begin,
                                                      items.data().data() + right.begin, num_ints);
            std::size_t alike = same == num_ints ? count : 0;
            if (alike != count) {
                while (left.ends[alike] - left.begin <= same) {
                    ++alike;
                }
            }
            if (alike != 0) {
                runs.push_back({place(), index(), static_cast<std::uint32_t>(alike)});
                left.drop(alike);
                right.drop(alike);
                count -= alike;
            }
            if (count != 0) {
                others.push_back(index());
                left.drop(1);
                right.drop(1);
                --count;
            }
        }
    }
}

namespace {

using snapshot::ItemKey;
using snapshot::SnapshotView;

constexpr std::uint16_t kLastOf16 = 15;
constexpr std::uint16_t kLastOf64 = 63;
constexpr std::size_t kLocal = 0;
constexpr std::size_t kPlayerFlags = 15;
constexpr std::uint32_t kScoreboardBit = 8;
constexpr std::uint32_t kSevenScoreboardBit = 4;

/// Servers reserve the last id of a client that knows fewer ids than there are players for a
/// nameless speaker.
bool is_nameless(const SnapshotView& items, std::uint16_t client) {
    const auto at = items.find({snapshot::kClientInfoType, client});
    if (!at) {
        return false;
    }
    std::array<char, 4> name{};
    const auto ints = items[*at].data;
    return ints.size() > 1 && snapshot::decode_int_string(ints.first(2), name) == 1 &&
           name.front() == ' ';
}

std::optional<std::uint16_t> local_player(const SnapshotView& items) {
    constexpr ItemKey kFirst{.type = snapshot::kPlayerInfoType, .id = 0};
    constexpr ItemKey kBehind{.type = snapshot::kPlayerInfoType + 1, .id = 0};
    const auto keys = items.keys();
    std::size_t at = items.lower_bound(kFirst);
    for (std::size_t begin = at == 0 ? 0 : items.ends()[at - 1];
         at < keys.size() && keys[at] < kBehind.packed(); begin = items.ends()[at++]) {
        if (begin + kLocal < items.ends()[at] && items.data()[begin + kLocal] != 0) {
            return ItemKey::from_packed(keys[at]).id;
        }
    }
    return std::nullopt;
}

/// Reads whether and whom the client spectates. `id`: the offset of the spectated id.
void read_watching(const SnapshotView& items, std::size_t id, View& view) {
    const std::size_t at = items.lower_bound({.type = snapshot::kSpectatorInfoType, .id = 0});
    if (at == items.size() || items[at].key.type != snapshot::kSpectatorInfoType) {
        return;
    }
    view.watches = true;
    const auto data = items[at].data;
    if (data.size() > id && data[id] >= 0 && data[id] <= snapshot::kMaxItemId) {
        view.watched = static_cast<std::uint16_t>(data[id]);
    }
}

bool has_bit(const SnapshotView& items, ItemKey key, std::size_t offset, std::uint32_t bit) {
    const auto at = items.find(key);
    return at && items[*at].data.size() > offset &&
           (static_cast<std::uint32_t>(items[*at].data[offset]) & bit) != 0;
}

/// As is_nameless() for 0.7, where messages contain the names without leading blanks.
bool is_nameless(const record::Roster& roster, std::uint16_t client) {
    const auto name = roster.name(client);
    std::array<char, 4 * record::kPlayerNameInts> text{};
    return name && snapshot::decode_int_string(name->ints, text) == 0;
}

} // namespace

View read_view(std::uint32_t session, std::int32_t version, const SnapshotView& items) {
    View view{.session = session, .version = version, .items = items};
    view.translated = is_nameless(items, kLastOf16) || is_nameless(items, kLastOf64);
    view.own = local_player(items);
    read_watching(items, 0, view);
    view.scoreboard = view.own && has_bit(items, {snapshot::kCharacterType, *view.own},
                                          kPlayerFlags, kScoreboardBit);
    return view;
}

View read_seven_view(std::uint32_t session, std::int32_t version, const SnapshotView& items,
                     const record::Roster* roster) {
    View view{.session = session,
              .version = version,
              .items = items,
              .dialect = snapshot::Dialect::seven,
              .roster = roster};
    if (roster != nullptr) {
        view.translated = is_nameless(*roster, kLastOf64);
        view.own = roster->own();
    }
    read_watching(items, 1, view);
    view.scoreboard = view.own && has_bit(items, {snapshot::kSevenPlayerInfoType, *view.own}, 0,
                                          kSevenScoreboardBit);
    return view;
}

namespace {

/// Whether the view shares this item of the bases.
bool has(std::span<const SharedRun> shared, std::uint32_t place) {
    const auto behind = std::ranges::upper_bound(shared, place, {}, &SharedRun::base);
    return behind != shared.begin() && place - std::prev(behind)->base < std::prev(behind)->count;
}

} // namespace

std::optional<std::uint32_t> View::find(ItemKey key) const {
    if (const auto at = items.find(key)) { // fewer than in the bases, so they are searched first
        return static_cast<std::uint32_t>(*at);
    }
    for (std::size_t base = 0; base < bases.size(); ++base) {
        if (const auto at = bases[base].find(key)) {
            const std::uint32_t place = BasePlace::make(base, *at);
            if (has(shared, place)) {
                return place | kOfBase;
            }
        }
    }
    return std::nullopt;
}

std::vector<std::uint32_t> View::places_of(std::uint16_t type) const {
    std::vector<std::uint32_t> places;
    const auto add = [&](const SnapshotView& from, std::uint32_t first, const auto& is_mine) {
        for (std::size_t at = from.lower_bound({.type = type, .id = 0});
             at < from.size() && from[at].key.type == type; ++at) {
            const auto place = first + static_cast<std::uint32_t>(at);
            if (is_mine(place)) {
                places.push_back(place);
            }
        }
    };
    for (std::size_t base = 0; base < bases.size(); ++base) {
        add(bases[base], kOfBase | BasePlace::make(base, 0),
            [this](std::uint32_t place) { return has(shared, place & ~kOfBase); });
    }
    add(items, 0, [](std::uint32_t /*place*/) { return true; });
    std::ranges::sort(places, {}, [this](std::uint32_t place) { return at(place).key.id; });
    return places;
}

bool says_more(const View& left, const View& right) {
    const auto rank = [](const View& view) {
        return std::tuple{view.dialect, view.translated, -std::int64_t{view.version}, view.session};
    };
    return rank(left) < rank(right);
}

int version_class(std::int32_t version) {
    constexpr std::array<std::int32_t, 9> kChanges{604,   15040, 16000, 16010, 16020,
                                                   16040, 16200, 19000, 20000};
    return static_cast<int>(std::ranges::upper_bound(kChanges, version) - kChanges.begin());
}

} // namespace tw::world
