#include "proxy/game/view.h"

#include "snapshot/objects.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace tw::game {

namespace {

using snapshot::ItemKey;
using snapshot::SnapshotView;

constexpr std::uint16_t kLastOf16 = 15;
constexpr std::uint16_t kLastOf64 = 63;
constexpr std::size_t kLocal = 0;
constexpr std::size_t kPlayerFlags = 15;
constexpr std::uint32_t kScoreboardBit = 8;

/// Servers put a speaker without a name at the last id of a client that knows fewer than there are.
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
    const auto keys = items.keys();
    const auto first = std::ranges::lower_bound(
        keys, ItemKey{.type = snapshot::kPlayerInfoType, .id = 0}.packed());
    for (auto at = first; at != keys.end(); ++at) {
        const auto item = items[static_cast<std::size_t>(at - keys.begin())];
        if (item.key.type != snapshot::kPlayerInfoType) {
            break;
        }
        if (!item.data.empty() && item.data[kLocal] != 0) {
            return item.key.id;
        }
    }
    return std::nullopt;
}

/// Reads whom the client watches, and that it does.
void read_watching(const SnapshotView& items, View& view) {
    const auto keys = items.keys();
    const auto at = std::ranges::lower_bound(
        keys, ItemKey{.type = snapshot::kSpectatorInfoType, .id = 0}.packed());
    if (at == keys.end() || ItemKey::from_packed(*at).type != snapshot::kSpectatorInfoType) {
        return;
    }
    view.watches = true;
    const auto data = items[static_cast<std::size_t>(at - keys.begin())].data;
    if (!data.empty() && data[0] >= 0 && data[0] <= snapshot::kMaxItemId) {
        view.watched = static_cast<std::uint16_t>(data[0]);
    }
}

bool looks_at_scoreboard(const SnapshotView& items, std::uint16_t own) {
    const auto at = items.find({snapshot::kCharacterType, own});
    if (!at) {
        return false;
    }
    const auto data = items[*at].data;
    return data.size() > kPlayerFlags &&
           (static_cast<std::uint32_t>(data[kPlayerFlags]) & kScoreboardBit) != 0;
}

} // namespace

View read_view(std::uint32_t session, std::int32_t version, const SnapshotView& items) {
    View view{.session = session, .version = version, .items = items};
    view.translated = is_nameless(items, kLastOf16) || is_nameless(items, kLastOf64);
    view.own = local_player(items);
    read_watching(items, view);
    view.scoreboard = view.own && looks_at_scoreboard(items, *view.own);
    return view;
}

bool says_more(const View& left, const View& right) {
    return std::tuple{left.translated, -std::int64_t{left.version}, left.session} <
           std::tuple{right.translated, -std::int64_t{right.version}, right.session};
}

int version_class(std::int32_t version) {
    constexpr std::array<std::int32_t, 9> kChanges{604,   15040, 16000, 16010, 16020,
                                                   16040, 16200, 19000, 20000};
    return static_cast<int>(std::ranges::upper_bound(kChanges, version) - kChanges.begin());
}

} // namespace tw::game
