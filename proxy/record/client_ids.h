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

namespace tw::record {

/// Whether an item's id is that of the client it is about.
[[nodiscard]] inline bool is_by_client(const snapshot::ObjectSpec& object, snapshot::ItemKey key) {
    return (object.client && !object.client->field) || key.type == snapshot::kPlayerInfoType ||
           key.type == snapshot::kClientInfoType;
}

/// Whether a message names a client in a field of this name.
[[nodiscard]] inline bool names_client(std::string_view field) {
    constexpr std::array<std::string_view, 4> kFields{"client_id", "killer", "victim", "first"};
    return std::ranges::find(kFields, field) != kFields.end();
}

/// Which of the ids that items name are meant.
enum class ClientIdScope : std::uint8_t {
    of_view, ///< those that servers make for who they are sent to: not who carries a flag or is
             ///< watched
    all,
};

/// Where an older form of a projectile has its owner among other bits (protocol sheet, section 8.3):
/// in the low byte of this int, unless that says that nobody owns it. Nothing: this is none.
[[nodiscard]] inline std::optional<std::size_t> packed_owner(const snapshot::ObjectSpec& object,
                                                             std::span<const std::int32_t> data) {
    constexpr std::size_t kData = 3;
    constexpr std::uint8_t kHundredths = 100;
    const bool is_older =
        object.merge.family == snapshot::Family::projectile && object.merge.form != 0;
    const auto position = is_older ? snapshot::position_of(object, data) : std::nullopt;
    return position && position->per_unit == kHundredths && data.size() > kData
               ? std::optional{kData}
               : std::nullopt;
}

/// `to(id)`, or none, is the id of a packed owner.
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

/// Gives the clients that an item names other ids: `to(id)`, or none. In a field that is -1: nobody,
/// or of a flag somebody, of a spectator the free view. False: the item is of a client without one.
template <typename To>
[[nodiscard]] bool renumber_clients(const snapshot::ObjectSpec& object, snapshot::ItemKey& key,
                                    std::span<std::int32_t> data, ClientIdScope scope,
                                    const To& to) {
    if (is_by_client(object, key)) {
        const std::optional<std::uint16_t> id = to(std::int32_t{key.id});
        if (!id) {
            return false;
        }
        key.id = *id;
    }
    if (const auto owner = packed_owner(object, data)) {
        data[*owner] = renumber_packed_owner(data[*owner], to);
    }
    for (const snapshot::FieldSpec& field : object.fields) {
        if (field.offset >= data.size()) {
            continue;
        }
        std::int32_t& value = data[field.offset];
        const bool may_name = field.names == &snapshot::names::flag_carrier_special ||
                              field.names == &snapshot::names::spectator_special;
        if (field.merge == snapshot::FieldMerge::client ||
            (may_name && value >= 0 && scope == ClientIdScope::all)) {
            const std::optional<std::uint16_t> id = to(value);
            value = id ? std::int32_t{*id} : -1;
        }
    }
    return true;
}

} // namespace tw::record
