#include "proxy/inspect/connection/session_checkpoint.h"

#include "snapshot/cursor.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace tw::inspect {

bool SessionCheckpoint::Snapshot::is_sound() const {
    if (tick < 0 || num_items > snapshot::kMaxItems || block.size() < 2 * std::size_t{num_items} ||
        view().size_bytes() > snapshot::kMaxSnapshotBytes) {
        return false;
    }
    const snapshot::SnapshotView snapshot = view();
    const auto ends = snapshot.ends();
    return std::ranges::adjacent_find(snapshot.keys(), std::greater_equal{}) ==
               snapshot.keys().end() &&
           std::ranges::is_sorted(ends) &&
           (ends.empty() ? snapshot.data().empty() : ends.back() == snapshot.data().size());
}

bool SessionCheckpoint::is_sound() const {
    return std::ranges::all_of(snapshots, &Snapshot::is_sound) &&
           std::ranges::adjacent_find(snapshots, std::greater_equal{}, &Snapshot::tick) ==
               snapshots.end();
}

std::vector<SessionCheckpoint::Part> copy_incomplete_parts(const snapshot::PartAssembler& parts) {
    std::vector<SessionCheckpoint::Part> open;
    parts.for_each_open([&](const snapshot::Part& part) {
        SessionCheckpoint::Part& kept = open.emplace_back();
        kept.head = part;
        kept.head.data = {};
        kept.data.assign(part.data.begin(), part.data.end());
    });
    return open;
}

std::vector<SessionCheckpoint::Snapshot> copy_snapshots_since(const snapshot::History& history,
                                                              snapshot::Tick oldest) {
    std::vector<SessionCheckpoint::Snapshot> snapshots;
    history.for_each_from(oldest, [&](snapshot::Tick tick, const snapshot::SnapshotView& view) {
        auto& kept = snapshots.emplace_back();
        kept.tick = tick;
        kept.num_items = static_cast<std::uint32_t>(view.size());
        kept.block.resize(view.block_ints());
        view.write_block(kept.block.data());
    });
    std::ranges::sort(snapshots, {}, &SessionCheckpoint::Snapshot::tick);
    return snapshots;
}

namespace {

using snapshot::Cursor;
using snapshot::DecodeErrc;
using snapshot::ItemView;
using snapshot::SnapshotView;
using snapshot::Tick;

/// The version of the layout with learned sizes.
constexpr std::int32_t kVersionWithSizes = 2;
/// The version of the layout without learned sizes, which older observers can read, too.
constexpr std::int32_t kVersion = 1;
constexpr std::size_t kMaxName = 2048; ///< longest map name in bytes; a datagram is shorter
constexpr std::size_t kMaxSnapshots = snapshot::kHistoryTicks + 1;
constexpr std::size_t kMaxOpenParts =
    snapshot::kMaxOpenTicks * static_cast<std::size_t>(snapshot::kMaxParts);
constexpr std::size_t kSizedTypes = std::tuple_size_v<snapshot::AgreedSizes>;
constexpr std::size_t kMaxInts = snapshot::kMaxSnapshotBytes / sizeof(std::int32_t);

/// Writes values one after the other. CheckpointReader reads them in the same order.
class CheckpointWriter {
  public:
    void number(std::int64_t value) {
        snapshot::encode_varint(static_cast<std::int32_t>(value), bytes);
    }

    void flag(bool value) { number(value ? 1 : 0); }

    void raw(std::span<const std::byte> data) {
        bytes.insert(bytes.end(), data.begin(), data.end());
    }

    void data(std::span<const std::byte> data) {
        number(static_cast<std::int64_t>(data.size()));
        raw(data);
    }

    std::vector<std::byte> bytes;
};

/// Reads values and checks them against limits.
class CheckpointReader {
  public:
    explicit CheckpointReader(std::span<const std::byte> bytes) : in_{bytes} {}

    [[nodiscard]] std::int32_t number() { return in_.var_int(); }

    /// Reads a number from 0 to `most`.
    [[nodiscard]] std::int32_t number(std::size_t most) {
        const std::int32_t value = in_.var_int();
        if (value < 0 || static_cast<std::size_t>(value) > most) {
            in_.fail(DecodeErrc::length_out_of_range);
            return 0;
        }
        return value;
    }

    [[nodiscard]] bool flag() { return number(1) == 1; }

    /// Reads the number of elements of a list. Each element takes at least one byte.
    [[nodiscard]] std::size_t count(std::size_t most) {
        return static_cast<std::size_t>(number(std::min(most, in_.remaining())));
    }

    void raw(std::span<std::byte> out) {
        const auto read = in_.raw(static_cast<std::int64_t>(out.size()));
        std::ranges::copy(read, out.begin());
    }

    [[nodiscard]] std::span<const std::byte> data(std::size_t most) {
        return in_.raw(static_cast<std::int64_t>(count(most)));
    }

    void fail() { in_.fail(DecodeErrc::length_out_of_range); }

    [[nodiscard]] bool failed() const { return in_.failed(); }

    [[nodiscard]] bool done() const { return !in_.failed() && in_.remaining() == 0; }

  private:
    Cursor in_;
};

/// Returns the ints of the item with this key and size in `other`; empty if it has no such item.
std::span<const std::int32_t> same_in(const SnapshotView& other, snapshot::ItemKey key,
                                      std::size_t size) {
    const auto found = other.find(key);
    return found && other[*found].data.size() == size ? other[*found].data
                                                      : std::span<const std::int32_t>{};
}

std::int32_t less(std::int32_t value, std::int32_t by) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) -
                                     static_cast<std::uint32_t>(by));
}

std::int32_t plus(std::int32_t value, std::int32_t by) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) +
                                     static_cast<std::uint32_t>(by));
}

void write_items(const SnapshotView& items, const SnapshotView& newer, CheckpointWriter& out) {
    out.number(static_cast<std::int64_t>(items.size()));
    std::uint32_t before = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const ItemView item = items[i];
        out.number(item.key.packed() - before);
        before = item.key.packed();
        const auto known = newer.find(item.key);
        if (known && std::ranges::equal(newer[*known].data, item.data)) {
            out.number(0);
            continue;
        }
        out.number(static_cast<std::int64_t>(item.data.size()) + 1);
        const auto base = same_in(newer, item.key, item.data.size());
        for (std::size_t k = 0; k < item.data.size(); ++k) {
            out.number(base.empty() ? item.data[k] : less(item.data[k], base[k]));
        }
    }
}

void read_item(CheckpointReader& in, snapshot::ItemKey key, const SnapshotView& newer,
               std::vector<std::int32_t>& data) {
    const std::size_t size = in.count(kMaxInts - data.size() + 1);
    if (size == 0) {
        const auto known = newer.find(key);
        if (!known || newer[*known].data.size() > kMaxInts - data.size()) {
            in.fail();
            return;
        }
        const auto ints = newer[*known].data;
        data.insert(data.end(), ints.begin(), ints.end());
        return;
    }
    const auto base = same_in(newer, key, size - 1);
    for (std::size_t k = 0; k + 1 < size; ++k) {
        const std::int32_t value = in.number();
        data.push_back(base.empty() ? value : plus(value, base[k]));
    }
}

SessionCheckpoint::Snapshot read_items(CheckpointReader& in, Tick tick, const SnapshotView& newer) {
    const std::size_t count = in.count(snapshot::kMaxItems);
    std::vector<std::int32_t> keys;
    std::vector<std::int32_t> ends;
    std::vector<std::int32_t> data;
    std::uint32_t packed = 0;
    for (std::size_t i = 0; i < count && !in.failed(); ++i) {
        const std::uint32_t before = packed;
        packed += static_cast<std::uint32_t>(in.number());
        if (i != 0 && packed <= before) {
            in.fail();
        }
        read_item(in, snapshot::ItemKey::from_packed(packed), newer, data);
        keys.push_back(static_cast<std::int32_t>(packed));
        ends.push_back(static_cast<std::int32_t>(data.size()));
    }
    SessionCheckpoint::Snapshot read{.tick = tick,
                                     .num_items = static_cast<std::uint32_t>(keys.size()),
                                     .block = std::move(keys)};
    read.block.insert(read.block.end(), ends.begin(), ends.end());
    read.block.insert(read.block.end(), data.begin(), data.end());
    return read;
}

void write_snapshots(const std::vector<SessionCheckpoint::Snapshot>& snapshots,
                     CheckpointWriter& out) {
    SnapshotView newer;
    Tick tick = -1;
    std::size_t written = 0;
    for (std::size_t left = snapshots.size(); left != 0; --left) {
        const SessionCheckpoint::Snapshot& each = snapshots[left - 1];
        const std::size_t whole = out.bytes.size();
        out.number(tick < 0 ? std::int64_t{each.tick} + 1 : std::int64_t{tick} - each.tick);
        write_items(each.view(), newer, out);
        if (out.bytes.size() >= kMaxEncodedCheckpoint || ++written > kMaxSnapshots) {
            out.bytes.resize(whole);
            break;
        }
        newer = each.view();
        tick = each.tick;
    }
    out.number(0);
}

std::vector<SessionCheckpoint::Snapshot> read_snapshots(CheckpointReader& in) {
    std::vector<SessionCheckpoint::Snapshot> snapshots;
    while (const auto step = in.number(std::numeric_limits<Tick>::max())) {
        const bool first = snapshots.empty();
        if (snapshots.size() == kMaxSnapshots || (!first && step > snapshots.back().tick)) {
            in.fail();
            break;
        }
        snapshots.push_back(read_items(in, first ? step - 1 : snapshots.back().tick - step,
                                       first ? SnapshotView{} : snapshots.back().view()));
        if (in.failed()) {
            break;
        }
    }
    std::ranges::reverse(snapshots);
    return snapshots;
}

void write_map(const MapAnnouncement& map, CheckpointWriter& out) {
    out.data(std::as_bytes(std::span{map.name}).first(std::min(map.name.size(), kMaxName)));
    out.number(map.crc);
    out.number(std::min<std::int64_t>(map.size, std::numeric_limits<std::int32_t>::max()));
    out.flag(map.any_version);
    out.flag(map.sha256.has_value());
    if (map.sha256) {
        out.raw(std::as_bytes(std::span{*map.sha256}));
    }
}

MapAnnouncement read_map(CheckpointReader& in) {
    const auto name = in.data(kMaxName);
    MapAnnouncement map{
        .name = clean_map_name({reinterpret_cast<const char*>(name.data()), name.size()})};
    map.crc = static_cast<std::uint32_t>(in.number());
    map.size = in.number();
    map.any_version = in.flag();
    if (in.flag()) {
        in.raw(std::as_writable_bytes(std::span{map.sha256.emplace()}));
    }
    return map;
}

void write_roster(const record::Roster& roster, CheckpointWriter& out) {
    roster.each([&](std::uint16_t client, const record::Roster::Entry& entry) {
        out.number(client + 1);
        out.number(entry.team);
        for (const std::int32_t ints : entry.name) {
            out.number(ints);
        }
    });
    out.number(0);
    out.number(roster.own_id() ? *roster.own_id() + 1 : 0);
}

record::Roster read_roster(CheckpointReader& in) {
    record::Roster roster;
    while (const auto client = in.number(record::Roster::kMaxPlayers)) {
        record::Roster::Entry entry{.team = in.number()};
        for (std::int32_t& ints : entry.name) {
            ints = in.number();
        }
        roster.set_player(static_cast<std::uint16_t>(client - 1), entry);
    }
    if (const auto own = in.number(record::Roster::kMaxClients)) {
        roster.set_own_id(static_cast<std::uint16_t>(own - 1));
    }
    return roster;
}

void write_sizes(const std::vector<LearnedSize>& sizes, CheckpointWriter& out) {
    constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
    out.number(static_cast<std::int64_t>(sizes.size()));
    for (const LearnedSize& each : sizes) {
        out.number(each.type);
        out.number(each.size);
        out.flag(each.confirmed);
        out.number(std::min(each.items, kMost));
        out.number(std::min(each.snapshots, kMost));
    }
}

std::vector<LearnedSize> read_sizes(CheckpointReader& in) {
    constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
    std::vector<LearnedSize> sizes(in.count(kSizedTypes));
    for (LearnedSize& each : sizes) {
        each.type = static_cast<std::uint16_t>(in.number(kSizedTypes - 1));
        each.size = static_cast<std::uint8_t>(in.number(UINT8_MAX));
        each.confirmed = in.flag();
        each.items = static_cast<std::uint32_t>(in.number(kMost));
        each.snapshots = static_cast<std::uint32_t>(in.number(kMost));
    }
    return sizes;
}

void write_parts(const std::vector<SessionCheckpoint::Part>& parts, CheckpointWriter& out) {
    out.number(static_cast<std::int64_t>(parts.size()));
    for (const SessionCheckpoint::Part& part : parts) {
        out.number(part.head.tick);
        out.number(part.head.delta_tick);
        out.number(part.head.num_parts);
        out.number(part.head.part);
        out.number(part.head.crc);
        out.flag(part.head.marked);
        out.data(part.data);
    }
}

std::vector<SessionCheckpoint::Part> read_parts(CheckpointReader& in) {
    std::vector<SessionCheckpoint::Part> parts(in.count(kMaxOpenParts));
    for (SessionCheckpoint::Part& part : parts) {
        part.head.tick = in.number(std::numeric_limits<Tick>::max());
        part.head.delta_tick = in.number();
        part.head.num_parts = in.number(snapshot::kMaxParts);
        part.head.part = in.number(snapshot::kMaxParts);
        part.head.crc = in.number();
        part.head.marked = in.flag();
        const auto data = in.data(snapshot::kMaxPartSize);
        part.data.assign(data.begin(), data.end());
    }
    return parts;
}

void write_connection(const SessionCheckpoint& checkpoint, CheckpointWriter& out) {
    out.number(static_cast<std::int32_t>(checkpoint.form));
    out.flag(checkpoint.translated);
    out.flag(checkpoint.token.has_value());
    if (checkpoint.token) {
        out.raw(std::as_bytes(std::span{*checkpoint.token}));
    }
    out.flag(checkpoint.client_version.has_value());
    out.number(checkpoint.client_version.value_or(0));
}

void read_connection(CheckpointReader& in, SessionCheckpoint& checkpoint) {
    checkpoint.form = static_cast<TokenForm>(in.number(static_cast<std::size_t>(TokenForm::seven)));
    checkpoint.translated = in.flag();
    if (in.flag()) {
        in.raw(std::as_writable_bytes(std::span{checkpoint.token.emplace()}));
    }
    const bool known = in.flag();
    const std::int32_t version = in.number();
    checkpoint.client_version = known ? std::optional{version} : std::nullopt;
}

} // namespace

std::vector<std::byte> encode_checkpoint(const SessionCheckpoint& checkpoint) {
    CheckpointWriter out;
    out.number(checkpoint.sizes.empty() ? kVersion : kVersionWithSizes);
    out.number(static_cast<std::int32_t>(checkpoint.dialect));
    write_connection(checkpoint, out);
    out.flag(checkpoint.map.has_value());
    if (checkpoint.map) {
        write_map(*checkpoint.map, out);
    }
    write_roster(checkpoint.roster, out);
    if (!checkpoint.sizes.empty()) {
        write_sizes(checkpoint.sizes, out);
    }
    write_parts(checkpoint.parts, out);
    write_snapshots(checkpoint.snapshots, out);
    return std::move(out.bytes);
}

std::optional<SessionCheckpoint> decode_checkpoint(std::span<const std::byte> bytes) {
    CheckpointReader in{bytes.first(std::min(bytes.size(), kMaxEncodedCheckpoint + 1))};
    SessionCheckpoint checkpoint;
    const std::int32_t version = in.number();
    if (version != kVersion && version != kVersionWithSizes) {
        return std::nullopt;
    }
    checkpoint.dialect = in.flag() ? snapshot::Dialect::seven : snapshot::Dialect::six;
    read_connection(in, checkpoint);
    if (in.flag()) {
        checkpoint.map = read_map(in);
    }
    checkpoint.roster = read_roster(in);
    if (version == kVersionWithSizes) {
        checkpoint.sizes = read_sizes(in);
    }
    checkpoint.parts = read_parts(in);
    checkpoint.snapshots = read_snapshots(in);
    const bool is_seven = checkpoint.dialect == snapshot::Dialect::seven;
    const bool fits =
        checkpoint.form == TokenForm::unknown || (checkpoint.form == TokenForm::seven) == is_seven;
    return in.done() && fits && checkpoint.is_sound() ? std::optional{std::move(checkpoint)}
                                                      : std::nullopt;
}

} // namespace tw::inspect
