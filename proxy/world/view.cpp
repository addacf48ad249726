#include "proxy/world/view.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace tw::world {

using snapshot::ItemKey;
using snapshot::SnapshotView;

namespace {

constexpr std::uint16_t kLastOf16 = 15;
constexpr std::uint16_t kLastOf64 = 63;
constexpr std::size_t kLocal = 0;
constexpr std::size_t kPlayerFlags = 15;
constexpr std::uint32_t kScoreboardBit = 8;
constexpr std::uint32_t kSevenScoreboardBit = 4;

/// Returns whether the client id belongs to the nameless speaker. If a server has more players than
/// a client supports, it uses the client's last id for chat lines of players without an id.
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

std::optional<std::uint16_t> find_own_client(const SnapshotView& items) {
    for (std::size_t i = items.lower_bound({.type = snapshot::kPlayerInfoType, .id = 0});
         i < items.size() && items[i].key.type == snapshot::kPlayerInfoType; ++i) {
        if (items[i].data.size() > kLocal && items[i].data[kLocal] != 0) {
            return items[i].key.id;
        }
    }
    return std::nullopt;
}

/// Sets the view's members about spectating. `id`: the offset of the spectated client's id in the
/// item.
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

/// Returns whether the client id belongs to the nameless speaker, the id for chat lines of players
/// without an id. In 0.7, names arrive in messages, without leading blanks.
bool is_nameless(const record::Roster& roster, std::uint16_t client) {
    const auto name = roster.name(client);
    std::array<char, 4 * record::kPlayerNameInts> text{};
    return name && snapshot::decode_int_string(name->ints, text) == 0;
}

} // namespace

View read_view(std::uint32_t session, std::int32_t version, const SnapshotView& items,
               snapshot::Dialect dialect, const record::Roster* roster) {
    View view{.session = session,
              .version = version,
              .items = items,
              .dialect = dialect,
              .roster = roster};
    if (dialect == snapshot::Dialect::six) {
        view.translated = is_nameless(items, kLastOf16) || is_nameless(items, kLastOf64);
        view.own = find_own_client(items);
        read_watching(items, 0, view);
        view.scoreboard = view.own && has_bit(items, {snapshot::kCharacterType, *view.own},
                                              kPlayerFlags, kScoreboardBit);
        return view;
    }
    if (roster != nullptr) {
        view.translated = is_nameless(*roster, kLastOf64);
        view.own = roster->own_id();
    }
    read_watching(items, 1, view);
    view.scoreboard = view.own && has_bit(items, {snapshot::kSevenPlayerInfoType, *view.own}, 0,
                                          kSevenScoreboardBit);
    return view;
}

bool has_more_information(const View& left, const View& right) {
    const auto rank = [](const View& view) {
        return std::tuple{view.dialect, view.translated, -std::int64_t{view.version}, view.session};
    };
    return rank(left) < rank(right);
}

unsigned version_class(std::int32_t version) {
    constexpr std::array<std::int32_t, 9> kChanges{604,   15040, 16000, 16010, 16020,
                                                   16040, 16200, 19000, 20000};
    return static_cast<unsigned>(std::ranges::upper_bound(kChanges, version) - kChanges.begin());
}

} // namespace tw::world
