#include "proxy/record/roster.h"

#include "map/text.h"
#include "proxy/wire/text.h"

#include <algorithm>
#include <span>
#include <string>

namespace tw::record {

namespace {

bool is_client(std::int32_t id) {
    return id >= 0 && static_cast<std::size_t>(id) < Roster::kMaxClients;
}

/// Readers of names turn control characters into spaces and skip white space in front.
constexpr std::uint8_t kNameCleaning = wire::kCleanAllControl | wire::kSkipBlanks;

} // namespace

void Roster::join(const Player& player) {
    if (!is_client(player.client_id)) {
        return;
    }
    const std::string text =
        wire::sanitize_string(std::as_bytes(std::span{player.name}), kNameCleaning);
    Entry entry{.team = player.team};
    // Vanilla and DDNet know no longer names than fit here.
    snapshot::encode_int_string(
        map::truncate_utf8(text, snapshot::kIntStringBytes * entry.name.size() - 1), entry.name);
    const auto client = static_cast<std::uint16_t>(player.client_id);
    put(client, entry);
    if (player.own) {
        own_ = client;
    }
}

void Roster::change_team(std::int32_t client_id, std::int32_t team) {
    if (is_client(client_id) && find(static_cast<std::uint16_t>(client_id)) != nullptr) {
        players_[static_cast<std::size_t>(client_id)]->team = team;
    }
}

void Roster::leave(std::int32_t client_id) {
    if (is_client(client_id) && static_cast<std::size_t>(client_id) < players_.size()) {
        players_[static_cast<std::size_t>(client_id)].reset();
    }
}

void Roster::put(std::uint16_t client, const Entry& entry) {
    if (client >= kMaxPlayers) {
        return;
    }
    if (client >= players_.size()) {
        players_.resize(client + std::size_t{1});
    }
    players_[client] = entry;
}

const Roster::Entry* Roster::find(std::uint16_t client) const {
    return client < players_.size() && players_[client] ? &*players_[client] : nullptr;
}

std::optional<PackedText> Roster::name(std::uint16_t client) const {
    const Entry* const entry = find(client);
    return entry == nullptr ? std::nullopt : std::optional{PackedText{entry->name}};
}

} // namespace tw::record
