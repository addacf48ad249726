#pragma once

#include "proxy/demo/demo_encoder.h"
#include "tests/support/snapshot_messages.h"

#include <initializer_list>
#include <utility>
#include <vector>

namespace tw::test {

[[nodiscard]] inline Bytes bytes_of(std::initializer_list<int> values) {
    Bytes bytes;
    for (const int value : values) {
        bytes.push_back(static_cast<std::byte>(value));
    }
    return bytes;
}

inline void append(Bytes& bytes, const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
}

[[nodiscard]] inline demo::DemoHeader demo_header(int version = 6) {
    demo::DemoHeader header{.version = version,
                            .map_name = "dm1",
                            .map_crc = 0x01020304,
                            .length = 3,
                            .timestamp = "2026-11-21_16-15-30"};
    if (version == demo::kFirstVersionWithSha256) {
        header.sha256.emplace().fill(7);
    }
    return header;
}

/// Returns the bytes of a demo with these snapshots.
[[nodiscard]] inline Bytes demo_of(int version,
                                   const std::vector<std::pair<snapshot::Tick, Items>>& snapshots,
                                   const Bytes& map = {}) {
    Bytes demo = demo::DemoEncoder::encode_start(demo_header(version), map);
    demo::DemoEncoder encoder{version, snapshot::Dialect::six};
    for (const auto& [tick, items] : snapshots) {
        static_cast<void>(encoder.append_snapshot(tick, to_snapshot(items).view(), demo));
    }
    encoder.append_final_chunk(demo);
    return demo;
}

} // namespace tw::test
