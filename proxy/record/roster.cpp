#include "proxy/record/roster.h"

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

/// The bytes of a name's last character that was cut are left out.
std::string_view cut(std::string_view name, std::size_t size) {
    if (name.size() <= size) {
        return name;
    }
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    while (size > 0 && continues(name[size])) {
        --size;
    }
    return name.substr(0, size);
}

} // namespace

void Roster::join(const Player& player) {
    if (!is_client(player.client_id)) {
        return;
    }
    const std::string text =
        wire::sanitize_string(std::as_bytes(std::span{player.name}), kNameCleaning);
    Name& name = names_[static_cast<std::size_t>(player.client_id)].emplace();
    // Vanilla and DDNet know no longer names than fit here.
    snapshot::encode_int_string(cut(text, snapshot::kIntStringBytes * name.size() - 1), name);
    if (player.own) {
        own_ = static_cast<std::uint16_t>(player.client_id);
    }
}

void Roster::leave(std::int32_t client_id) {
    if (is_client(client_id)) {
        names_[static_cast<std::size_t>(client_id)].reset();
    }
}

std::optional<PackedText> Roster::name(std::uint16_t client) const {
    if (client >= names_.size() || !names_[client]) {
        return std::nullopt;
    }
    return PackedText{*names_[client]};
}

} // namespace tw::record
