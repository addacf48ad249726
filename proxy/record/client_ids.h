#pragma once

#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <cstdint>
#include <optional>
#include <span>

namespace tw::record {

/// Whether an item's id is that of the client it is about.
[[nodiscard]] inline bool is_by_client(const snapshot::ObjectSpec& object, snapshot::ItemKey key) {
    return (object.client && !object.client->field) || key.type == snapshot::kPlayerInfoType ||
           key.type == snapshot::kClientInfoType;
}

/// Gives the clients that an item names other ids: `to(id)`, or none. In a field that is -1, nobody.
/// False: the item is of a client without one.
template <typename To>
[[nodiscard]] bool renumber_clients(const snapshot::ObjectSpec& object, snapshot::ItemKey& key,
                                    std::span<std::int32_t> data, const To& to) {
    if (is_by_client(object, key)) {
        const std::optional<std::uint16_t> id = to(std::int32_t{key.id});
        if (!id) {
            return false;
        }
        key.id = *id;
    }
    for (const snapshot::FieldSpec& field : object.fields) {
        if (field.merge == snapshot::FieldMerge::client && field.offset < data.size()) {
            const std::optional<std::uint16_t> id = to(data[field.offset]);
            data[field.offset] = id ? std::int32_t{*id} : -1;
        }
    }
    return true;
}

} // namespace tw::record
