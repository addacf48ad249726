#include "proxy/demo/world_demo.h"

#include "proxy/record/client_ids.h"
#include "proxy/wire/message.h"
#include "snapshot/objects.h"

#include <cstdlib>

namespace tw::demo {

using snapshot::ItemKey;
using snapshot::ItemView;
using snapshot::ObjectSpec;

namespace {

/// The number of client ids on DDNet's largest servers. Older clients draw only the first 64.
constexpr std::uint16_t kDdnetClients = 128;

/// The order in which items are added to a snapshot if it has no room for all items.
enum class ItemRank : std::uint8_t { descriptor, game, player, character, flag, entity, event };

constexpr std::uint16_t kFlagType = 5;

ItemRank rank_of(const record::ItemTypes& types, std::uint16_t type) {
    if (type == snapshot::kDescriptorType) {
        return ItemRank::descriptor;
    }
    if (type == snapshot::kCharacterType || type == kFlagType) {
        return type == kFlagType ? ItemRank::flag : ItemRank::character;
    }
    const snapshot::ObjectSpec* const object = types.object(type);
    if (object == nullptr) {
        return ItemRank::entity;
    }
    if (object->kind == snapshot::ObjectKind::event) {
        return ItemRank::event;
    }
    if (object->position) {
        return ItemRank::entity;
    }
    return object->client ? ItemRank::player : ItemRank::game;
}

DemoOptions as_server_demos(DemoOptions options) {
    options.of_server = true;
    return options;
}

} // namespace

DemoClientIds::IdLimits DemoClientIds::id_limits_for(const record::SnapshotRecord& world) const {
    if (record::dialect_of(world) == snapshot::Dialect::seven) {
        return {.first_changed_id = record::Roster::kMaxClients, .slots = kMaxSlots};
    }
    if (vanilla_) {
        return {.first_changed_id = kMaxVanillaClients, .slots = kMaxVanillaClients};
    }
    return {.first_changed_id = kDdnetClients, .slots = kMaxSlots};
}

void DemoClientIds::collect_clients(const record::SnapshotRecord& world) {
    present_clients_.clear();
    for (const std::uint32_t packed : world.items.keys()) {
        const ItemKey key = ItemKey::from_packed(packed);
        const ObjectSpec* const object = world.types->object(key.type);
        if (object != nullptr && record::has_client_id(*object, key)) {
            present_clients_.insert(key.id);
        }
    }
    if (world.roster != nullptr) {
        world.roster->for_each_player(
            [&](std::uint16_t client, const record::Roster::KnownPlayer& /*entry*/) {
                present_clients_.insert(client);
            });
    }
}

void DemoClientIds::assign_slot(std::uint16_t client) {
    if (id_of(client)) {
        return;
    }
    // Searches from the highest id. Servers assign the lowest ids first, so high ids stay free
    // longest.
    std::optional<std::uint16_t> best;
    for (std::uint16_t slot = limits_.slots; slot-- > 0;) {
        const auto& holder = slots_[slot];
        if (present_clients_.contains(slot) || (holder && present_clients_.contains(*holder))) {
            continue;
        }
        if (!holder) { // prefers a free slot, because an absent player may return
            best = slot;
            break;
        }
        best = best.value_or(slot);
    }
    if (best) {
        slots_[*best] = client;
    }
}

std::optional<std::uint16_t> DemoClientIds::id_of(std::int32_t client) const {
    if (client < 0 || client > snapshot::kMaxItemId) {
        return std::nullopt;
    }
    if (client < limits_.first_changed_id) {
        return static_cast<std::uint16_t>(client);
    }
    const std::optional holder{static_cast<std::uint16_t>(client)};
    const auto found = std::ranges::find(slots_, holder);
    return found == slots_.end()
               ? std::nullopt
               : std::optional{static_cast<std::uint16_t>(found - slots_.begin())};
}

std::uint64_t DemoClientIds::renumber_players(const record::SnapshotRecord& world) {
    std::uint64_t num_left_out = 0;
    renumbered_.clear();
    for (std::size_t i = 0; i < world.items.size(); ++i) {
        const ItemView item = world.items[i];
        RenumberedItem moved{.key = item.key, .data = {item.data.begin(), item.data.end()}};
        const ObjectSpec* const object = world.types->object(item.key.type);
        const bool there =
            object == nullptr ||
            record::renumber_clients(*object, moved.key, moved.data, record::ClientIdScope::all,
                                     [&](std::int32_t client) { return id_of(client); });
        if (there) {
            renumbered_.push_back(std::move(moved));
        } else {
            ++num_left_out;
        }
    }
    std::ranges::sort(renumbered_, {}, &RenumberedItem::key);
    items_.clear();
    for (const RenumberedItem& item : renumbered_) {
        items_.append(item.key, item.data);
    }
    roster_.clear();
    if (world.roster != nullptr) {
        world.roster->for_each_player(
            [&](std::uint16_t client, const record::Roster::KnownPlayer& entry) {
                if (const auto id = id_of(client)) {
                    roster_.set_player(*id, entry);
                }
            });
    }
    return num_left_out;
}

DemoItems DemoClientIds::assign_ids(const record::SnapshotRecord& world) {
    limits_ = id_limits_for(world);
    collect_clients(world);
    if (present_clients_.lower_bound(limits_.first_changed_id) == present_clients_.end()) {
        return {.items = world.items, .roster = world.roster};
    }
    for (std::uint16_t slot = 0; slot < kMaxSlots; ++slot) {
        if (present_clients_.contains(slot) || slot >= limits_.slots) {
            slots_[slot].reset(); // the server uses this id, or no client draws it
        }
    }
    for (auto client = present_clients_.lower_bound(limits_.first_changed_id);
         client != present_clients_.end(); ++client) {
        assign_slot(*client);
    }
    const std::uint64_t num_left_out = renumber_players(world);
    return {.items = items_.view(),
            .roster = world.roster == nullptr ? nullptr : &roster_,
            .num_left_out = num_left_out};
}

WorldDemo::WorldDemo(DemoOptions options, store::FileQueue& files)
    : vanilla_{options.version < kFirstVersionWithSteps}, demos_{
                                                              as_server_demos(std::move(options)),
                                                              files} {}

void WorldDemo::on_record(const record::Record& record) {
    if (const auto* const* world = std::get_if<const record::WorldRecord*>(&record)) {
        handle_world(**world);
    }
}

snapshot::SnapshotView WorldDemo::playable_items(const record::SnapshotRecord& world) {
    const snapshot::SnapshotView& items = world.items;
    order_.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
        const ObjectSpec* const object = world.types->object(items[i].key.type);
        if (object == nullptr || object->type == 0 ||
            object->dialect == record::dialect_of(world)) {
            order_.push_back(i);
        }
    }
    std::ranges::stable_sort(
        order_, {}, [&](std::size_t item) { return rank_of(*world.types, items[item].key.type); });
    constexpr std::size_t kHead = 8; // bytes in the head of a snapshot, and of each item
    std::size_t count = record::dialect_of(world) == snapshot::Dialect::seven
                            ? SevenDemoItems::count_added_items(world.roster)
                            : 0;
    std::size_t bytes = kHead + count * (kHead + SevenDemoItems::kClientInfoBytes);
    const std::size_t num_left_out = std::erase_if(order_, [&](std::size_t item) {
        const std::size_t size = kHead + items[item].data.size_bytes();
        const bool fits =
            count < snapshot::kMaxItems && bytes + size <= snapshot::kMaxSnapshotBytes;
        bytes += fits ? size : 0;
        count += fits ? 1 : 0;
        return !fits;
    });
    losses_.items_over_limit += num_left_out;
    losses_.ticks_over_limit += num_left_out == 0 ? 0 : 1;
    std::ranges::sort(order_);
    playable_.clear();
    for (const std::size_t item : order_) {
        playable_.append(items[item].key, items[item].data);
    }
    return playable_.view();
}

bool WorldDemo::end_longest_idle_demo(const record::RecordHeader& now) {
    // `now` may be earlier than the last world, if a later capture was recorded earlier.
    const auto silence = [&](const auto& each) {
        return std::abs(now.time - each.second.last_world);
    };
    const auto idlest = std::ranges::max_element(servers_, {}, silence);
    if (idlest == servers_.end() || silence(*idlest) < kIdleTimeout) {
        return false;
    }
    record::SessionRecord end{.head = {.time = now.time, .session = idlest->second.number},
                              .event = record::SessionEvent::close};
    demos_.on_record(&end);
    servers_.erase(idlest);
    return true;
}

WorldDemo::ServerDemo* WorldDemo::demo_of_server(const record::WorldRecord& world) {
    auto known = servers_.find(world.server);
    if (known == servers_.end()) {
        if (servers_.size() >= kMaxServers && !end_longest_idle_demo(world.head)) {
            return nullptr;
        }
        known = servers_
                    .emplace(world.server, ServerDemo{.number = ++last_number_,
                                                      .client_ids = DemoClientIds{vanilla_}})
                    .first;
    }
    known->second.last_world = world.head.time;
    return &known->second;
}

void WorldDemo::begin_map(ServerDemo& server_demo, const record::WorldRecord& world) {
    if (!server_demo.is_map_named && server_demo.run == world.run) {
        --num_runs_without_map_; // this run is counted already; only the dialect changed
    }
    server_demo.run = world.run;
    server_demo.dialect = record::dialect_of(world.merged);
    server_demo.ordinal = 0;
    server_demo.is_map_named = false;
    server_demo.client_ids = DemoClientIds{vanilla_};
    ++num_runs_without_map_;
}

void WorldDemo::handle_world(const record::WorldRecord& world) {
    // Only clients that requested a higher rate get snapshots of odd ticks. A world of an odd tick
    // may therefore lack players that none of these clients sees.
    const bool partial = world.tick % 2 != 0 && !world.complete;
    if (partial || world.map == nullptr) {
        return;
    }
    const snapshot::Dialect dialect = record::dialect_of(world.merged);
    ServerDemo* const place = demo_of_server(world);
    if (place == nullptr) {
        ++losses_.worlds_over_limit;
        return;
    }
    ServerDemo& server_demo = *place;
    if (server_demo.run != world.run || server_demo.dialect != dialect) {
        begin_map(server_demo, world);
    }
    if (!server_demo.is_map_named) {
        if (world.map->name.empty()) {
            return;
        }
        server_demo.is_map_named = true; // perhaps from a client that joined later
        --num_runs_without_map_;
    }
    if (server_demo.ordinal == 0) {
        record::MapRecord map = *world.map;
        map.head = world.head;
        map.head.session = server_demo.number;
        demos_.on_record(&map);
    }
    record::SnapshotRecord shown = world.merged;
    shown.head.session = server_demo.number;
    const DemoItems placed = server_demo.client_ids.assign_ids(world.merged);
    losses_.items_without_id += placed.num_left_out;
    losses_.ticks_without_id += placed.num_left_out == 0 ? 0 : 1;
    shown.items = placed.items;
    shown.roster = placed.roster;
    shown.items = playable_items(shown);
    shown.ordinal = server_demo.ordinal++;
    demos_.on_record(&shown);
}

void WorldDemo::on_world_message(const record::WorldMessage& message) {
    const auto known = servers_.find(message.server);
    if (known == servers_.end() || !known->second.is_map_named ||
        known->second.run != message.run) {
        return; // the message's server has no demo
    }
    std::vector<wire::FieldValue> values{message.values.begin(), message.values.end()};
    for (wire::FieldValue& value : values) {
        if (!record::is_client_id_field(value.name) || value.integer < 0) {
            continue;
        }
        const auto id = known->second.client_ids.id_of(static_cast<std::int32_t>(value.integer));
        if (!id) {
            ++losses_.messages_without_id;
            return;
        }
        value.integer = *id;
    }
    const std::vector<std::byte> payload = wire::encode_message(*message.spec, values);
    const wire::MessageSpec& spec = *message.spec;
    record::MessageRecord said{.head = {.time = message.time,
                                        .session = known->second.number,
                                        .direction = wire::Direction::s2c},
                               .name = spec.name,
                               .vital = true,
                               .size = payload.size(),
                               .number = spec.number,
                               .uuid = spec.number == 0 ? std::optional{spec.uuid} : std::nullopt,
                               .values = values,
                               .payload = payload};
    demos_.on_record(&said);
}

DemoLosses WorldDemo::losses() const {
    DemoLosses losses = demos_.losses();
    losses.merge(losses_);
    losses.sessions_without_map += num_runs_without_map_;
    return losses;
}

} // namespace tw::demo
