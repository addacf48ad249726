#include "proxy/sink/demo_vanilla.h"

#include "proxy/record/client_ids.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tw::sink {

namespace {

/// Vanilla keeps what these say by the item's id, in tables that it does not look at the end of.
bool is_by_client(std::uint16_t type) {
    return type == snapshot::kCharacterType || type == snapshot::kPlayerInfoType ||
           type == snapshot::kClientInfoType;
}

bool is_vanilla(const snapshot::ItemView& item, const snapshot::ObjectSpec* object) {
    if (item.key.type == snapshot::kDescriptorType || item.key.type >= snapshot::kFirstUuidType) {
        return false;
    }
    if (is_by_client(item.key.type) && item.key.id >= kVanillaClients) {
        return false;
    }
    if (object == nullptr) {
        return true; // dropped as unknown
    }
    const auto client = snapshot::client_of(*object, item.key, item.data);
    return !client || *client < kVanillaClients;
}

std::optional<std::uint16_t> vanilla_id(std::int32_t client) {
    return client >= 0 && client < kVanillaClients
               ? std::optional{static_cast<std::uint16_t>(client)}
               : std::nullopt;
}

} // namespace

void keep_vanilla_items(const snapshot::SnapshotView& items, snapshot::Snapshot& out) {
    out.clear();
    std::vector<std::int32_t> data;
    for (std::size_t i = 0; i < items.size(); ++i) {
        snapshot::ItemView item = items[i];
        const snapshot::ObjectSpec* const object =
            snapshot::find_object(item.key.type, snapshot::Dialect::six);
        if (!is_vanilla(item, object)) {
            continue;
        }
        if (object != nullptr) {
            data.assign(item.data.begin(), item.data.end());
            static_cast<void>(record::renumber_clients(*object, item.key, data,
                                                       record::ClientIdScope::all, vanilla_id));
            item.data = data;
        }
        out.append(item.key, item.data);
    }
}

bool is_vanilla_message(const record::MessageRecord& message) {
    const auto names_too_high = [](const wire::FieldValue& value) {
        return value.integer >= kVanillaClients && record::names_client(value.name);
    };
    return !message.uuid &&
           std::none_of(message.values.begin(), message.values.end(), names_too_high);
}

} // namespace tw::sink
