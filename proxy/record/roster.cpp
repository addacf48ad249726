#include "proxy/record/roster.h"

#include "map/text.h"
#include "map/tiles.h"
#include "proxy/wire/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace tw::record {

namespace {

bool is_client_id(std::int32_t id) {
    return id >= 0 && static_cast<std::size_t>(id) < Roster::kMaxClients;
}

/// How clients sanitise names: control characters become spaces; leading white space is skipped.
constexpr std::uint8_t kNameCleaning = wire::kCleanAllControl | wire::kSkipBlanks;

} // namespace

void Roster::add_player(const Player& player) {
    if (!is_client_id(player.client_id)) {
        return;
    }
    const std::string text =
        wire::sanitize_string(std::as_bytes(std::span{player.name}), kNameCleaning);
    KnownPlayer entry{.team = player.team};
    // Vanilla and DDNet limit names to this length.
    snapshot::encode_int_string(
        map::truncate_utf8(text, snapshot::kIntStringBytes * entry.name.size() - 1), entry.name);
    const auto client = static_cast<std::uint16_t>(player.client_id);
    set_player(client, entry);
    if (player.is_own) {
        own_id_ = client;
    }
}

void Roster::change_team(std::int32_t client_id, std::int32_t team) {
    if (is_client_id(client_id) && find(static_cast<std::uint16_t>(client_id)) != nullptr) {
        players_[static_cast<std::size_t>(client_id)]->team = team;
    }
}

void Roster::remove_player(std::int32_t client_id) {
    if (is_client_id(client_id) && static_cast<std::size_t>(client_id) < players_.size()) {
        players_[static_cast<std::size_t>(client_id)].reset();
    }
}

void Roster::set_player(std::uint16_t client, const KnownPlayer& entry) {
    if (client >= kMaxPlayers) {
        return;
    }
    if (client >= players_.size()) {
        players_.resize(client + std::size_t{1});
    }
    players_[client] = entry;
}

const Roster::KnownPlayer* Roster::find(std::uint16_t client) const {
    return client < players_.size() && players_[client] ? &*players_[client] : nullptr;
}

std::optional<PackedText> Roster::name(std::uint16_t client) const {
    const KnownPlayer* const entry = find(client);
    return entry == nullptr ? std::nullopt : std::optional{PackedText{entry->name}};
}

namespace {

std::string name_of(const SnapshotRecord& record, std::uint16_t client) {
    const auto name = player_name(record, client);
    if (!name) {
        return fmt::format("client {}", client);
    }
    std::array<char, 4 * kPlayerNameInts> text{};
    return {text.data(), snapshot::decode_int_string(name->ints, text)};
}

std::string place_of(const record::SnapshotRecord& record, std::uint16_t client) {
    const snapshot::Dialect dialect = dialect_of(record);
    const std::uint16_t type = snapshot::character_type(dialect);
    const auto character = record.items.find({type, client});
    const snapshot::ObjectSpec* spec =
        record.types == nullptr ? snapshot::find_object(type, dialect) : record.types->object(type);
    if (!character || spec == nullptr) {
        return "not in the game";
    }
    const auto data = record.items[*character].data;
    if (record.tile_map != nullptr) {
        if (const auto place = record.tile_map->tiles_at(*spec, data)) {
            return fmt::format("({},{}) {}", place->tile.x, place->tile.y,
                               map::tile_name(map::Layer::game, place->game));
        }
    }
    const auto position = record::world_position(*spec, data);
    return position ? fmt::format("x={} y={}", position->x, position->y) : "";
}

std::optional<std::int32_t> score_of(const record::SnapshotRecord& record, std::uint16_t client) {
    const snapshot::Dialect dialect = dialect_of(record);
    const std::uint16_t type = snapshot::player_info_type(dialect);
    const auto info = record.items.find({type, client});
    const snapshot::ObjectSpec* const spec = snapshot::find_object(type, dialect);
    if (!info || spec == nullptr) {
        return std::nullopt;
    }
    const auto data = record.items[*info].data;
    const auto score =
        std::ranges::find(spec->fields, std::string_view{"score"}, &snapshot::FieldSpec::name);
    return score == spec->fields.end() || score->offset >= data.size()
               ? std::nullopt
               : std::optional{data[score->offset]};
}

} // namespace

std::optional<std::uint16_t> find_own_client(const snapshot::SnapshotView& items) {
    std::optional<std::uint16_t> own; // the player whose player_info has `local` set
    for_each_item_of_type(items, snapshot::kPlayerInfoType, [&](const snapshot::ItemView& info) {
        if (!own && !info.data.empty() && info.data.front() != 0) {
            own = info.key.id;
        }
    });
    return own;
}

std::optional<LocalPlayer> local_player(const record::SnapshotRecord& record) {
    if (!record.rebuilt) {
        return std::nullopt;
    }
    const auto client =
        record.roster != nullptr ? record.roster->own_id() : find_own_client(record.items);
    if (!client) {
        return std::nullopt;
    }
    return LocalPlayer{.name = name_of(record, *client),
                       .place = place_of(record, *client),
                       .score = score_of(record, *client),
                       .is_score_time =
                           dialect_of(record) == snapshot::Dialect::seven &&
                           record.items.find({snapshot::kSevenGameDataRaceType, 0}).has_value()};
}

} // namespace tw::record
