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

/// Returns whether a name is that of the nameless speaker. If a server has more players than a
/// client supports, it uses the client's last id for chat lines of players without an id. In 0.7,
/// names arrive in messages, without leading blanks.
bool is_nameless(std::optional<record::PackedText> name, snapshot::Dialect dialect) {
    return name && unpack_text(*name) == (dialect == snapshot::Dialect::seven ? "" : " ");
}

std::optional<std::uint16_t> find_own_client(const SnapshotView& items) {
    std::optional<std::uint16_t> own;
    for_each_item_of_type(items, snapshot::kPlayerInfoType, [&](const snapshot::ItemView& info) {
        if (!own && info.data.size() > kLocal && info.data[kLocal] != 0) {
            own = info.key.id;
        }
    });
    return own;
}

/// Sets the view's members about spectating. `id`: the offset of the spectated client's id in the
/// item.
void read_watching(const SnapshotView& items, std::size_t id, View& view) {
    const std::size_t at = items.lower_bound({.type = snapshot::kSpectatorInfoType, .id = 0});
    if (at == items.size() || items[at].key.type != snapshot::kSpectatorInfoType) {
        return;
    }
    view.is_spectating = true;
    const auto data = items[at].data;
    if (data.size() > id && data[id] >= 0 && data[id] <= snapshot::kMaxItemId) {
        view.spectated = static_cast<std::uint16_t>(data[id]);
    }
}

bool has_bit(const SnapshotView& items, ItemKey key, std::size_t offset, std::uint32_t bit) {
    const auto at = items.find(key);
    return at && items[*at].data.size() > offset &&
           (static_cast<std::uint32_t>(items[*at].data[offset]) & bit) != 0;
}

} // namespace

std::string unpack_text(record::PackedText name) {
    std::array<char, 4 * record::kPlayerNameInts> text{};
    const std::size_t size = snapshot::decode_int_string(name.ints, text);
    return {text.data(), size};
}

View make_view(std::uint32_t session, std::int32_t version, const SnapshotView& items,
               snapshot::Dialect dialect, const record::Roster* roster) {
    View view{.session = session,
              .version = version,
              .items = items,
              .dialect = dialect,
              .roster = roster};
    if (dialect == snapshot::Dialect::six) {
        view.translated = is_nameless(record::player_name(items, kLastOf16), dialect) ||
                          is_nameless(record::player_name(items, kLastOf64), dialect);
        view.own = find_own_client(items);
        read_watching(items, 0, view);
        view.shows_scoreboard = view.own && has_bit(items, {snapshot::kCharacterType, *view.own},
                                                    kPlayerFlags, kScoreboardBit);
        return view;
    }
    if (roster != nullptr) {
        view.translated = is_nameless(roster->name(kLastOf64), dialect);
        view.own = roster->own_id();
    }
    read_watching(items, 1, view);
    view.shows_scoreboard = view.own && has_bit(items, {snapshot::kSevenPlayerInfoType, *view.own},
                                                0, kSevenScoreboardBit);
    return view;
}

bool has_more_information(const View& left, const View& right) {
    const auto rank = [](const View& view) {
        return std::tuple{view.dialect, view.translated, -std::int64_t{view.version}, view.session};
    };
    return rank(left) < rank(right);
}

unsigned client_version_class(std::int32_t version) {
    constexpr std::array<std::int32_t, 9> kChanges{604,   15040, 16000, 16010, 16020,
                                                   16040, 16200, 19000, 20000};
    return static_cast<unsigned>(std::ranges::upper_bound(kChanges, version) - kChanges.begin());
}

} // namespace tw::world
