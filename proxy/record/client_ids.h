#pragma once

#include "snapshot/item.h"
#include "snapshot/names.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// Finds client ids in items and messages, and replaces them in items.
namespace tw::record {

/// Returns whether the id in an item's key is a client id.
[[nodiscard]] inline bool has_client_id(const snapshot::ObjectSpec& object, snapshot::ItemKey key) {
    return (object.client && !object.client->field) || key.type == snapshot::kPlayerInfoType ||
           key.type == snapshot::kClientInfoType;
}

/// Returns whether a message field with the given name holds a client id.
[[nodiscard]] inline bool is_client_id_field(std::string_view field) {
    constexpr std::array<std::string_view, 4> kFields{"client_id", "killer", "victim", "first"};
    return std::ranges::find(kFields, field) != kFields.end();
}

/// Which client ids in items renumber_clients() replaces.
enum class ClientIdScope : std::uint8_t {
    /// Only client ids that servers translate for each client: all except those of flag carriers
    /// and spectated players.
    translated,
    all,
};

/// Returns the index of the int whose low byte is the client id of a projectile's owner. Bit 8 of
/// this int means "no owner". Returns nullopt unless the item is a projectile in an older format.
[[nodiscard]] inline std::optional<std::size_t>
find_packed_owner(const snapshot::ObjectSpec& object, std::span<const std::int32_t> data) {
    constexpr std::size_t kData = 3;
    constexpr std::uint8_t kHundredths = 100;
    const bool is_older =
        object.merge.family == snapshot::ObjectFamily::projectile && object.merge.variant != 0;
    const auto position = is_older ? snapshot::position_of(object, data) : std::nullopt;
    return position && position->per_unit == kHundredths && data.size() > kData
               ? std::optional{kData}
               : std::nullopt;
}

/// Returns `data`, an int that find_packed_owner() found, with its client id `id` replaced by
/// `to(id)`. If `to(id)` is nullopt, the new int means "no owner".
template <typename To>
[[nodiscard]] std::int32_t renumber_packed_owner(std::int32_t data, const To& to) {
    constexpr std::uint32_t kIdBits = 0xff;
    constexpr std::uint32_t kNobody = 0x100;
    const auto bits = static_cast<std::uint32_t>(data);
    if ((bits & kNobody) != 0) {
        return data;
    }
    const std::optional<std::uint16_t> id = to(static_cast<std::int32_t>(bits & kIdBits));
    const std::uint32_t owner = id && *id <= kIdBits ? std::uint32_t{*id} : kNobody;
    return static_cast<std::int32_t>((bits & ~kIdBits) | owner);
}

/// Replaces each client id `id` of an item by `to(id)`. If `to(id)` is nullopt, the field becomes
/// -1. Depending on the field, this means no client, an unknown flag carrier, or a spectator's free
/// view. Returns false if `to` returns nullopt for the client id in the item's key.
template <typename To>
[[nodiscard]] bool renumber_clients(const snapshot::ObjectSpec& object, snapshot::ItemKey& key,
                                    std::span<std::int32_t> data, ClientIdScope scope,
                                    const To& to) {
    if (has_client_id(object, key)) {
        const std::optional<std::uint16_t> id = to(std::int32_t{key.id});
        if (!id) {
            return false;
        }
        key.id = *id;
    }
    if (const auto owner = find_packed_owner(object, data)) {
        data[*owner] = renumber_packed_owner(data[*owner], to);
    }
    for (const snapshot::FieldSpec& field : object.fields) {
        if (field.offset >= data.size()) {
            continue;
        }
        std::int32_t& value = data[field.offset];
        const bool may_name = field.names == &snapshot::names::flag_carrier_special ||
                              field.names == &snapshot::names::spectator_special;
        if (field.merge == snapshot::FieldMerge::client_id ||
            (may_name && value >= 0 && scope == ClientIdScope::all)) {
            const std::optional<std::uint16_t> id = to(value);
            value = id ? std::int32_t{*id} : -1;
        }
    }
    return true;
}

} // namespace tw::record
