#include "proxy/world/view.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace tw::world {

using snapshot::ItemKey;
using snapshot::SnapshotView;

namespace {

constexpr std::uint16_t kLastClientOf16 = 15;
constexpr std::uint16_t kLastClientOf64 = 63;
constexpr std::size_t kPlayerFlagsIndex = 15;
constexpr std::uint32_t kScoreboardBit = 8;
constexpr std::uint32_t kSevenScoreboardBit = 4;

/// Returns whether the name belongs to no player. If a server has more players than a client
/// supports, it gives a blank name to the client's last id and uses this id for chat lines of
/// players without an id. In 0.7, names arrive in messages, without leading blanks.
bool is_nameless(std::optional<record::PackedText> name, snapshot::Dialect dialect) {
    return name && unpack_text(*name) == (dialect == snapshot::Dialect::seven ? "" : " ");
}

/// Sets the view's `is_spectating` and `spectated_client_id`. `id`: the offset of the spectated
/// client's id in a spectator_info item.
void read_spectated_client(const SnapshotView& items, std::size_t id, View& view) {
    const std::size_t at = items.lower_bound({.type = snapshot::kSpectatorInfoType, .id = 0});
    if (at == items.size() || items[at].key.type != snapshot::kSpectatorInfoType) {
        return;
    }
    view.is_spectating = true;
    const auto data = items[at].data;
    if (data.size() > id && data[id] >= 0 && data[id] <= snapshot::kMaxItemId) {
        view.spectated_client_id = static_cast<std::uint16_t>(data[id]);
    }
}

bool has_bit_in_item(const SnapshotView& items, ItemKey key, std::size_t offset,
                     std::uint32_t bit) {
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
              .client_version = version,
              .items = items,
              .dialect = dialect,
              .roster = roster};
    if (dialect == snapshot::Dialect::six) {
        view.has_translated_ids =
            is_nameless(record::player_name(items, kLastClientOf16), dialect) ||
            is_nameless(record::player_name(items, kLastClientOf64), dialect);
        view.own_client_id = record::find_own_client(items);
        read_spectated_client(items, 0, view);
        view.shows_scoreboard =
            view.own_client_id &&
            has_bit_in_item(items, {snapshot::kCharacterType, *view.own_client_id},
                            kPlayerFlagsIndex, kScoreboardBit);
        return view;
    }
    if (roster != nullptr) {
        view.has_translated_ids = is_nameless(roster->name(kLastClientOf64), dialect);
        view.own_client_id = roster->own_id();
    }
    read_spectated_client(items, 1, view);
    view.shows_scoreboard =
        view.own_client_id &&
        has_bit_in_item(items, {snapshot::kSevenPlayerInfoType, *view.own_client_id}, 0,
                        kSevenScoreboardBit);
    return view;
}

bool has_more_information(const View& left, const View& right) {
    const auto rank = [](const View& view) {
        return std::tuple{view.dialect, view.has_translated_ids, -std::int64_t{view.client_version},
                          view.session};
    };
    return rank(left) < rank(right);
}

unsigned client_version_class(std::int32_t version) {
    constexpr std::array<std::int32_t, 9> kChanges{604,   15040, 16000, 16010, 16020,
                                                   16040, 16200, 19000, 20000};
    return static_cast<unsigned>(std::ranges::upper_bound(kChanges, version) - kChanges.begin());
}

AnnouncedMap::AnnouncedMap(const record::MapRecord& announced)
    : name{announced.name}, record{announced} {
    record.name = name;
    const auto source = std::ranges::find(record::kMapSources, announced.source);
    record.source = source == record::kMapSources.end() ? std::string_view{} : *source;
}

} // namespace tw::world
