#pragma once

#include "proxy/record/records.h"
#include "snapshot/object_set.h"
#include "snapshot/snapshot.h"

#include <cstdint>

/// What vanilla Teeworlds 0.6 takes of a demo. It checks little: a client's number beyond its own
/// limit is an index into its memory.
namespace tw::sink {

inline constexpr std::int32_t kVanillaClients = 16;

/// Copies the items that vanilla knows: none that go by a UUID, and none of clients it has no room
/// for. A field that names such a client (who is hooked, watched, or carries a flag) says -1.
void keep_vanilla_items(const snapshot::SnapshotView& items, snapshot::Snapshot& out);

/// Whether vanilla knows the message, and every client it names.
[[nodiscard]] bool is_vanilla_message(const record::MessageRecord& message);

} // namespace tw::sink
