#include "proxy/sink/demo_players.h"

#include "proxy/record/client_ids.h"
#include "proxy/record/snapshot_names.h"
#include "proxy/sink/demo_vanilla.h"

#include <algorithm>
#include <utility>

namespace tw::sink {

using snapshot::ItemKey;
using snapshot::ItemView;
using snapshot::ObjectSpec;

namespace {

/// DDNet's largest server; older clients draw half of them.
constexpr std::uint16_t kDdnetClients = 128;

} // namespace

DemoPlayers::Limits DemoPlayers::limits_of(const record::SnapshotRecord& world) const {
    if (record::dialect_of(world) == snapshot::Dialect::seven) {
        return {.kept = record::Roster::kMaxClients, .slots = kMostSlots};
    }
    if (vanilla_) {
        return {.kept = kVanillaClients, .slots = kVanillaClients};
    }
    return {.kept = kDdnetClients, .slots = kMostSlots};
}

void DemoPlayers::gather(const record::SnapshotRecord& world) {
    present_.clear();
    for (const std::uint32_t packed : world.items.keys()) {
        const ItemKey key = ItemKey::from_packed(packed);
        const ObjectSpec* const object = world.types->object(key.type);
        if (object != nullptr && record::is_by_client(*object, key)) {
            present_.insert(key.id);
        }
    }
    if (world.roster != nullptr) {
        world.roster->each([&](std::uint16_t client, const record::Roster::Entry& /*entry*/) {
            present_.insert(client);
        });
    }
}

void DemoPlayers::seat(std::uint16_t client) {
    if (id_of(client)) {
        return;
    }
    // Servers give the lowest ids first, so that the highest are free for longest.
    std::optional<std::uint16_t> best;
    for (std::uint16_t slot = limits_.slots; slot-- > 0;) {
        const auto& holder = slots_[slot];
        if (present_.contains(slot) || (holder && present_.contains(*holder))) {
            continue;
        }
        if (!holder) { // rather than that of one who may be back soon
            best = slot;
            break;
        }
        best = best.value_or(slot);
    }
    if (best) {
        slots_[*best] = client;
    }
}

std::optional<std::uint16_t> DemoPlayers::id_of(std::int32_t client) const {
    if (client < 0 || client > snapshot::kMaxItemId) {
        return std::nullopt;
    }
    if (client < limits_.kept) {
        return static_cast<std::uint16_t>(client);
    }
    const std::optional holder{static_cast<std::uint16_t>(client)};
    const auto found = std::find(slots_.begin(), slots_.end(), holder);
    return found == slots_.end()
               ? std::nullopt
               : std::optional{static_cast<std::uint16_t>(found - slots_.begin())};
}

std::uint64_t DemoPlayers::renumber(const record::SnapshotRecord& world) {
    std::uint64_t left_out = 0;
    moved_.clear();
    for (std::size_t i = 0; i < world.items.size(); ++i) {
        const ItemView item = world.items[i];
        Moved moved{.key = item.key, .data = {item.data.begin(), item.data.end()}};
        const ObjectSpec* const object = world.types->object(item.key.type);
        const bool there =
            object == nullptr ||
            record::renumber_clients(*object, moved.key, moved.data, record::ClientIdScope::all,
                                     [&](std::int32_t client) { return id_of(client); });
        if (there) {
            moved_.push_back(std::move(moved));
        } else {
            ++left_out;
        }
    }
    std::ranges::sort(moved_, {}, &Moved::key);
    items_.clear();
    for (const Moved& item : moved_) {
        items_.append(item.key, item.data);
    }
    roster_.clear();
    if (world.roster != nullptr) {
        world.roster->each([&](std::uint16_t client, const record::Roster::Entry& entry) {
            if (const auto id = id_of(client)) {
                roster_.put(*id, entry);
            }
        });
    }
    return left_out;
}

DemoItems DemoPlayers::place(const record::SnapshotRecord& world) {
    limits_ = limits_of(world);
    gather(world);
    if (present_.lower_bound(limits_.kept) == present_.end()) {
        return {.items = world.items, .roster = world.roster};
    }
    for (std::uint16_t slot = 0; slot < kMostSlots; ++slot) {
        if (present_.contains(slot) || slot >= limits_.slots) {
            slots_[slot].reset(); // somebody has that id on the server now
        }
    }
    for (auto client = present_.lower_bound(limits_.kept); client != present_.end(); ++client) {
        seat(*client);
    }
    const std::uint64_t left_out = renumber(world);
    return {.items = items_.view(),
            .roster = world.roster == nullptr ? nullptr : &roster_,
            .left_out = left_out};
}

} // namespace tw::sink
