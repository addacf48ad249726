#include "proxy/world/missing_tee_check.h"

#include "snapshot/objects.h"

#include <algorithm>
#include <string_view>

namespace tw::world {

using snapshot::ItemKey;
using snapshot::SnapshotView;

namespace {

constexpr std::size_t kCharacterX = 1;
constexpr std::size_t kCharacterY = 2;
/// Index of the team in a player_info; the team is negative for spectators.
constexpr std::size_t kTeamIndex = 2;
constexpr std::size_t kDeathClient = 2; ///< index of the client id in a death event
/// The bits afk, paused and spec of explayerflag.
constexpr std::uint32_t kAwayBits = 1U | 2U | 4U;
/// The bit "dead" of 0.7's playerflag.
constexpr std::uint32_t kDeadBit = 0x10;

/// How far a tee may move in a few ticks, in world units. The distances at which vanilla servers
/// send tees are reduced by this margin.
constexpr std::int64_t kMovementMargin = 400;
constexpr std::int64_t kMaxDistanceX = 1000 - kMovementMargin;
constexpr std::int64_t kMaxDistanceY = 800 - kMovementMargin;
constexpr std::int64_t kMaxDistance = 1100 - kMovementMargin;

struct TeePosition {
    std::int64_t x = 0;
    std::int64_t y = 0;
};

std::optional<TeePosition> find_position(const View& view, ItemKey key, std::size_t x) {
    const auto at = view.items.find(key);
    const auto data = at ? view.items[*at].data : std::span<const std::int32_t>{};
    return data.size() < x + 2 ? std::nullopt : std::optional{TeePosition{data[x], data[x + 1]}};
}

/// Returns whether the position is so close to the viewer's tee that the server certainly sends the
/// viewer a tee at this position.
bool is_certainly_in_view(const View& view, std::uint16_t character, TeePosition place) {
    const auto eye = view.own_client_id && !view.is_spectating
                         ? find_position(view, {character, *view.own_client_id}, kCharacterX)
                         : std::nullopt;
    if (!eye) {
        return false;
    }
    const std::int64_t dx = place.x - eye->x;
    const std::int64_t dy = place.y - eye->y;
    return dx >= -kMaxDistanceX && dx <= kMaxDistanceX && dy >= -kMaxDistanceY &&
           dy <= kMaxDistanceY && dx * dx + dy * dy <= kMaxDistance * kMaxDistance;
}

/// Returns whether a player in the player list must have a tee. In 0.7, players who are out of the
/// round have none.
bool must_have_tee(const snapshot::ItemView& info, const record::Roster* roster) {
    if (roster == nullptr) {
        return info.data.size() > kTeamIndex && info.data[kTeamIndex] >= 0;
    }
    const auto* const player = roster->find(info.key.id);
    return player != nullptr && player->team >= 0 && !info.data.empty() &&
           (static_cast<std::uint32_t>(info.data[0]) & kDeadBit) == 0;
}

using SortedClientIds = std::vector<std::uint16_t>; ///< client ids in ascending order

/// The players of a merged snapshot, in two lists: those who must have a tee, and those who need
/// not.
struct PlayerLists {
    SortedClientIds expected; ///< the players who have a tee or soon get one
    /// The players with a reason to have no tee: dead, spectating, or away.
    SortedClientIds excused;
};

PlayerLists read_players(const record::SnapshotRecord& shown) {
    const SnapshotView& world = shown.items;
    const record::ItemTypes& types = *shown.types;
    PlayerLists players;
    for_each_item_of_type(
        world, snapshot::player_info_type(types.dialect()), [&](const snapshot::ItemView& info) {
            (must_have_tee(info, shown.roster) ? players.expected : players.excused)
                .push_back(info.key.id);
        });
    const std::uint16_t deaths = types.dialect() == snapshot::Dialect::seven
                                     ? snapshot::kSevenDeathType
                                     : snapshot::kDeathType;
    for_each_item_of_type(world, deaths, [&](const snapshot::ItemView& death) {
        if (death.data.size() > kDeathClient && death.data[kDeathClient] >= 0 &&
            death.data[kDeathClient] <= snapshot::kMaxItemId) {
            players.excused.push_back(static_cast<std::uint16_t>(death.data[kDeathClient]));
        }
    });
    // The type of the previous item. The next item often has the same type, because items are
    // sorted by type.
    const record::ItemTypes::TypeInfo* entry = nullptr;
    for (std::size_t i = world.lower_bound({.type = snapshot::kFirstUuidType, .id = 0});
         i < world.size(); ++i) {
        const snapshot::ItemView item = world[i];
        if (entry == nullptr || entry->type != item.key.type) {
            entry = types.find(item.key.type);
        }
        if (entry == nullptr || entry->object == nullptr) {
            continue;
        }
        const std::string_view name = entry->object->name;
        const bool away = name == "ddnet_player" && !item.data.empty() &&
                          (static_cast<std::uint32_t>(item.data[0]) & kAwayBits) != 0;
        if (away || name == "spec_char") {
            players.excused.push_back(item.key.id);
        }
    }
    std::ranges::sort(players.excused);
    return players;
}

} // namespace

void MissingTeeCheck::store_tees_and_witnesses(const record::WorldRecord& world,
                                               std::span<const View> views, bool vanilla) {
    const std::uint16_t character = snapshot::character_type(world.merged.types->dialect());
    for_each_item_of_type(world.merged.items, character, [&](const snapshot::ItemView& tee) {
        if (tee.data.size() <= kCharacterY ||
            (players_.size() >= kMaxPlayers && !players_.contains(tee.key.id))) {
            return;
        }
        PlayerHistory& player = players_[tee.key.id];
        player.last_tee_tick = world.tick;
        player.x = tee.data[kCharacterX];
        player.y = tee.data[kCharacterY];
        player.is_reported = false;
        player.witnesses.clear();
        for (const View& view : vanilla ? views : std::span<const View>{}) {
            const bool own = view.own_client_id == tee.key.id && !view.is_spectating;
            if (player.witnesses.size() < kMaxWitnesses && !view.has_translated_ids &&
                view.items.find(tee.key) &&
                (own || is_certainly_in_view(view, character, {player.x, player.y}))) {
                player.witnesses.push_back(view.session);
            }
        }
    });
    for (const View& view : vanilla ? std::span<const View>{} : views) {
        const auto player = view.own_client_id && !view.is_spectating && !view.has_translated_ids
                                ? players_.find(*view.own_client_id)
                                : players_.end();
        if (player != players_.end() && player->second.last_tee_tick == world.tick &&
            player->second.witnesses.size() < kMaxWitnesses &&
            view.items.find({character, *view.own_client_id})) {
            player->second.witnesses.push_back(view.session);
        }
    }
}

std::vector<record::FindingRecord>
MissingTeeCheck::find_disappeared_tees(const record::WorldRecord& world,
                                       std::span<const View> views, bool is_complete) {
    const SnapshotView& items = world.merged.items;
    const snapshot::Tick tick = world.tick;
    const std::uint16_t character = snapshot::character_type(world.merged.types->dialect());
    const PlayerLists lists = read_players(world.merged);
    if (!is_complete) {
        std::erase_if(players_, [&](const auto& each) {
            return std::ranges::binary_search(lists.excused, each.first);
        });
        for (auto& [client, player] : players_) {
            std::erase_if(player.witnesses, [&](std::uint32_t witness) {
                return std::ranges::find(views, witness, &View::session) == views.end();
            });
        }
        return {};
    }
    if (last_examined_ && std::int64_t{tick} - *last_examined_ > kMaxTickStep) {
        players_.clear();
    }
    last_examined_ = tick;
    std::erase_if(players_, [&](const auto& each) {
        return !std::ranges::binary_search(lists.expected, each.first) ||
               std::ranges::binary_search(lists.excused, each.first);
    });
    // A DDNet snapshot contains type descriptors.
    const bool vanilla = items.empty() || items[0].key.type != snapshot::kDescriptorType;
    std::vector<record::FindingRecord> found;
    for (auto& [client, player] : players_) {
        if (items.find({character, client})) {
            continue;
        }
        std::erase_if(
            player.witnesses, [&, client = client, &player = player](std::uint32_t witness) {
                const auto view = std::ranges::find(views, witness, &View::session);
                const bool looks = view != views.end() && !view->is_spectating;
                const bool own = looks && view->own_client_id == client;
                return !own && !(looks && vanilla &&
                                 is_certainly_in_view(*view, character, {player.x, player.y}));
            });
        if (!player.is_reported && !player.witnesses.empty() &&
            std::int64_t{tick} - player.last_tee_tick >= kMissingTicks) {
            player.is_reported = true;
            record::FindingRecord& finding = found.emplace_back(record::FindingRecord{
                .head = {.session = player.witnesses.front()},
                .id = record::FindingId::world_vanished,
                .tick = tick,
                .item =
                    record::FindingItem{.type_id = character, .id = client, .type = "character"},
                .since_tick = player.last_tee_tick + 1});
            if (world.merged.tile_map != nullptr) {
                finding.place =
                    world.merged.tile_map->tiles_at_impossible_position(player.x, player.y);
            }
        }
    }
    store_tees_and_witnesses(world, views, vanilla);
    return found;
}

} // namespace tw::world
