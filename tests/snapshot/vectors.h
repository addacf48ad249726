#pragma once

#include "snapshot/cursor.h"
#include "snapshot/snapshot.h"
#include "tests/support/spec_vectors.h"

#include <cstdint>
#include <map>
#include <vector>

namespace tw::snapshot::test {

using namespace tw::test;

inline std::vector<std::int32_t> ints_of(const boost::json::value& list) {
    std::vector<std::int32_t> ints;
    for (const auto& value : list.as_array()) {
        ints.push_back(value.to_number<std::int32_t>());
    }
    return ints;
}

inline Bytes encode_ints(const std::vector<std::int32_t>& ints) {
    Bytes bytes;
    for (const std::int32_t value : ints) {
        encode_varint(value, bytes);
    }
    return bytes;
}

/// Returns the snapshot in a list of {type, id, data} in any order.
inline Snapshot snapshot_of(const boost::json::value& items) {
    std::map<ItemKey, std::vector<std::int32_t>> sorted;
    for (const auto& item : items.as_array()) {
        const ItemKey key{item.at("type").to_number<std::uint16_t>(),
                          item.at("id").to_number<std::uint16_t>()};
        sorted[key] = ints_of(item.at("data"));
    }
    Snapshot snapshot;
    for (const auto& [key, data] : sorted) {
        snapshot.append(key, data);
    }
    return snapshot;
}

} // namespace tw::snapshot::test
