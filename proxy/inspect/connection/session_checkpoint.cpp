#include "proxy/inspect/connection/session_checkpoint.h"

#include "snapshot/cursor.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace tw::inspect {

bool SessionCheckpoint::Snapshot::is_consistent() const {
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

bool SessionCheckpoint::is_consistent() const {
    return std::ranges::all_of(snapshots, &Snapshot::is_consistent) &&
           std::ranges::adjacent_find(snapshots, std::greater_equal{}, &Snapshot::tick) ==
               snapshots.end();
}

namespace {

using snapshot::Cursor;
using snapshot::DecodeErrc;
using snapshot::ItemView;
using snapshot::SnapshotView;
using snapshot::Tick;

/// The version of a checkpoint that contains learned item sizes.
constexpr std::int32_t kVersionWithSizes = 2;
/// The version of a checkpoint without learned item sizes, which older observers can read, too.
constexpr std::int32_t kVersionWithoutSizes = 1;
constexpr std::size_t kMaxMapNameBytes = 2048; ///< longest map name in bytes; a datagram is shorter
constexpr std::size_t kMaxSnapshots = snapshot::kHistoryTicks + 1;
constexpr std::size_t kMaxOpenParts =
    snapshot::kMaxOpenTicks * static_cast<std::size_t>(snapshot::kMaxParts);
constexpr std::size_t kMaxSnapshotInts = snapshot::kMaxSnapshotBytes / sizeof(std::int32_t);

/// Writes the values of a checkpoint one after the other, or reads and checks them. One function
/// for each struct lists the values, both for writing and for reading.
class CheckpointArchive {
  public:
    /// Makes an archive for writing.
    CheckpointArchive() = default;

    /// Makes an archive for reading `bytes`.
    explicit CheckpointArchive(std::span<const std::byte> bytes) : in_{bytes} {}

    template <typename Number>
    void visit_number(Number& value) {
        if (in_) {
            value = static_cast<Number>(in_->var_int());
        } else {
            snapshot::encode_varint(static_cast<std::int32_t>(value), written_bytes);
        }
    }

    /// Writes or reads a number from 0 to `most`. A larger number is written as `most`;
    /// reading a larger number is an error.
    template <typename Number>
    void visit_number(Number& value, std::size_t most) {
        auto checked = static_cast<std::int32_t>(std::min(static_cast<std::size_t>(value), most));
        visit_number(checked);
        if (checked < 0 || static_cast<std::size_t>(checked) > most) {
            fail();
            checked = 0;
        }
        value = static_cast<Number>(checked);
    }

    void visit_flag(bool& value) { visit_number(value, 1); }

    /// Writes or reads the number of elements of a list. When reading, a number greater than the
    /// number of remaining bytes is an error.
    void visit_count(std::size_t& value, std::size_t most) {
        visit_number(value, in_ ? std::min(most, in_->remaining()) : most);
    }

    void visit_raw_bytes(std::span<std::byte> bytes) {
        if (in_) {
            std::ranges::copy(in_->raw(static_cast<std::int64_t>(bytes.size())), bytes.begin());
        } else {
            written_bytes.insert(written_bytes.end(), bytes.begin(), bytes.end());
        }
    }

    /// Writes or reads the length of a list, then calls `visit` for each element.
    template <typename List, typename Visit>
    void visit_list(List& list, std::size_t most, const Visit& visit) {
        std::size_t length = list.size();
        visit_count(length, most);
        list.resize(length);
        std::ranges::for_each(list, visit);
    }

    /// Writes or reads the length of a text or byte vector, then its bytes.
    template <typename Bytes>
    void visit_bytes(Bytes& bytes, std::size_t most) {
        std::size_t length = bytes.size();
        visit_count(length, most);
        bytes.resize(length);
        visit_raw_bytes(std::as_writable_bytes(std::span{bytes}));
    }

    /// Writes or reads whether an optional has a value. If so, calls `visit` for the value.
    template <typename Value, typename Visit>
    void visit_optional(std::optional<Value>& value, const Visit& visit) {
        bool there = value.has_value();
        visit_flag(there);
        if (there) {
            visit(value ? *value : value.emplace());
        }
    }

    void fail() {
        if (in_) {
            in_->fail(DecodeErrc::length_out_of_range);
        }
    }

    [[nodiscard]] bool is_reading() const { return in_.has_value(); }

    [[nodiscard]] bool failed() const { return in_ && in_->failed(); }

    [[nodiscard]] bool is_fully_read() const { return !failed() && in_->remaining() == 0; }

    std::vector<std::byte> written_bytes;

  private:
    std::optional<Cursor> in_;
};

std::int32_t wrapping_sum(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

/// Writes or reads the ints of an item. `item`: the ints to write; empty when reading. `ints`: the
/// ints of the snapshot's items so far, to which the item's ints are added.
void visit_item(CheckpointArchive& archive, snapshot::ItemKey key,
                std::span<const std::int32_t> item, const SnapshotView& newer,
                std::vector<std::int32_t>& ints) {
    const auto known = newer.find(key);
    const auto newer_item = known ? newer[*known].data : std::span<const std::int32_t>{};
    const std::size_t room = kMaxSnapshotInts - ints.size();
    std::size_t size = known && std::ranges::equal(newer_item, item) ? 0 : item.size() + 1;
    archive.visit_count(size, room + 1);
    if (size == 0) {
        if (!known || newer_item.size() > room) {
            archive.fail();
            return;
        }
        ints.insert(ints.end(), newer_item.begin(), newer_item.end());
        return;
    }
    const bool same_size = known && newer_item.size() == size - 1;
    for (std::size_t i = 0; i + 1 < size; ++i) {
        const std::int32_t base = same_size ? newer_item[i] : 0;
        const auto minus_base = static_cast<std::int32_t>(0U - static_cast<std::uint32_t>(base));
        std::int32_t value = archive.is_reading() ? 0 : wrapping_sum(item[i], minus_base);
        archive.visit_number(value);
        ints.push_back(wrapping_sum(value, base));
    }
}

void visit_items(CheckpointArchive& archive, SessionCheckpoint::Snapshot& snapshot,
                 const SnapshotView& newer) {
    const SnapshotView items = snapshot.view();
    std::size_t count = items.size();
    archive.visit_count(count, snapshot::kMaxItems);
    std::vector<std::int32_t> keys;
    std::vector<std::int32_t> ends;
    std::vector<std::int32_t> ints;
    std::uint32_t before = 0;
    for (std::size_t i = 0; i < count && !archive.failed(); ++i) {
        const ItemView item = archive.is_reading() ? ItemView{} : items[i];
        std::uint32_t step = item.key.packed() - before;
        archive.visit_number(step);
        const std::uint32_t packed = before + step;
        if (i != 0 && packed <= before) {
            archive.fail();
        }
        before = packed;
        visit_item(archive, snapshot::ItemKey::from_packed(packed), item.data, newer, ints);
        keys.push_back(static_cast<std::int32_t>(packed));
        ends.push_back(static_cast<std::int32_t>(ints.size()));
    }
    if (archive.is_reading()) {
        snapshot.num_items = static_cast<std::uint32_t>(keys.size());
        snapshot.block = std::move(keys);
        snapshot.block.insert(snapshot.block.end(), ends.begin(), ends.end());
        snapshot.block.insert(snapshot.block.end(), ints.begin(), ints.end());
    }
}

void write_snapshots(std::vector<SessionCheckpoint::Snapshot>& snapshots,
                     CheckpointArchive& archive) {
    SnapshotView newer;
    Tick tick = -1;
    std::size_t written = 0;
    for (std::size_t left = snapshots.size(); left != 0; --left) {
        SessionCheckpoint::Snapshot& each = snapshots[left - 1];
        const std::size_t whole = archive.written_bytes.size();
        std::int64_t step = tick < 0 ? std::int64_t{each.tick} + 1 : std::int64_t{tick} - each.tick;
        archive.visit_number(step);
        visit_items(archive, each, newer);
        if (archive.written_bytes.size() >= kMaxEncodedCheckpoint || ++written > kMaxSnapshots) {
            archive.written_bytes.resize(whole);
            break;
        }
        newer = each.view();
        tick = each.tick;
    }
    Tick end = 0;
    archive.visit_number(end);
}

std::vector<SessionCheckpoint::Snapshot> read_snapshots(CheckpointArchive& archive) {
    std::vector<SessionCheckpoint::Snapshot> snapshots;
    for (Tick step = 0;;) {
        archive.visit_number(step, std::numeric_limits<Tick>::max());
        const bool first = snapshots.empty();
        if (step == 0) {
            break;
        }
        if (snapshots.size() == kMaxSnapshots || (!first && step > snapshots.back().tick)) {
            archive.fail();
            break;
        }
        SessionCheckpoint::Snapshot read{.tick = first ? step - 1 : snapshots.back().tick - step,
                                         .block = {}};
        visit_items(archive, read, first ? SnapshotView{} : snapshots.back().view());
        snapshots.push_back(std::move(read));
    }
    std::ranges::reverse(snapshots);
    return snapshots;
}

void visit_map(CheckpointArchive& archive, MapAnnouncement& map) {
    archive.visit_bytes(map.name, kMaxMapNameBytes);
    archive.visit_number(map.crc);
    archive.visit_number(map.size);
    archive.visit_flag(map.accepts_any_version);
    archive.visit_optional(map.sha256, [&](auto& sha256) {
        archive.visit_raw_bytes(std::as_writable_bytes(std::span{sha256}));
    });
}

void visit_player(CheckpointArchive& archive, record::Roster::KnownPlayer& player) {
    archive.visit_number(player.team);
    std::ranges::for_each(player.name, [&](std::int32_t& ints) { archive.visit_number(ints); });
}

/// Writes or reads the players, each after its client id plus 1. A 0 ends the list. The client id
/// of the session's own client plus 1 follows, or 0 if it is unknown.
void visit_roster(CheckpointArchive& archive, record::Roster& roster) {
    std::size_t client = 0;
    roster.for_each_player([&](std::uint16_t known, record::Roster::KnownPlayer player) {
        client = known + 1U;
        archive.visit_number(client);
        visit_player(archive, player);
    });
    client = 0;
    for (archive.visit_number(client, record::Roster::kMaxPlayers); client != 0;
         archive.visit_number(client, record::Roster::kMaxPlayers)) {
        record::Roster::KnownPlayer player;
        visit_player(archive, player);
        roster.set_player(static_cast<std::uint16_t>(client - 1), player);
    }
    client = roster.own_id() ? *roster.own_id() + 1U : 0;
    archive.visit_number(client, record::Roster::kMaxClients);
    if (client != 0) {
        roster.set_own_id(static_cast<std::uint16_t>(client - 1));
    }
}

void visit_learned_size(CheckpointArchive& archive, LearnedSize& size) {
    constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
    archive.visit_number(size.type, kNumberedTypes - 1);
    archive.visit_number(size.size, UINT8_MAX);
    archive.visit_flag(size.is_confirmed);
    archive.visit_number(size.num_items, kMost);
    archive.visit_number(size.num_snapshots, kMost);
}

void visit_part(CheckpointArchive& archive, SessionCheckpoint::Part& part) {
    archive.visit_number(part.part_without_data.tick, std::numeric_limits<Tick>::max());
    archive.visit_number(part.part_without_data.delta_tick);
    archive.visit_number(part.part_without_data.num_parts, snapshot::kMaxParts);
    archive.visit_number(part.part_without_data.part, snapshot::kMaxParts);
    archive.visit_number(part.part_without_data.crc);
    archive.visit_flag(part.part_without_data.marked);
    archive.visit_bytes(part.data, snapshot::kMaxPartSize);
}

/// Writes or reads all members except the snapshots.
void visit_checkpoint(CheckpointArchive& archive, SessionCheckpoint& checkpoint) {
    std::int32_t version =
        checkpoint.learned_sizes.empty() ? kVersionWithoutSizes : kVersionWithSizes;
    archive.visit_number(version);
    if (version != kVersionWithoutSizes && version != kVersionWithSizes) {
        archive.fail();
    }
    archive.visit_number(checkpoint.dialect, static_cast<std::size_t>(snapshot::Dialect::seven));
    archive.visit_number(checkpoint.token_form, static_cast<std::size_t>(TokenForm::seven));
    archive.visit_flag(checkpoint.is_translated_to_seven);
    archive.visit_optional(checkpoint.token, [&](wire::Token& token) {
        archive.visit_raw_bytes(std::as_writable_bytes(std::span{token}));
    });
    bool is_version_known = checkpoint.client_version.has_value();
    std::int32_t client_version = checkpoint.client_version.value_or(0);
    archive.visit_flag(is_version_known);
    archive.visit_number(client_version);
    checkpoint.client_version = is_version_known ? std::optional{client_version} : std::nullopt;
    archive.visit_optional(checkpoint.map, [&](MapAnnouncement& map) { visit_map(archive, map); });
    visit_roster(archive, checkpoint.roster);
    if (version == kVersionWithSizes) {
        archive.visit_list(checkpoint.learned_sizes, kNumberedTypes,
                           [&](LearnedSize& size) { visit_learned_size(archive, size); });
    }
    archive.visit_list(checkpoint.parts, kMaxOpenParts,
                       [&](SessionCheckpoint::Part& part) { visit_part(archive, part); });
}

} // namespace

std::vector<std::byte> encode_checkpoint(SessionCheckpoint checkpoint) {
    CheckpointArchive archive;
    visit_checkpoint(archive, checkpoint);
    write_snapshots(checkpoint.snapshots, archive);
    return std::move(archive.written_bytes);
}

std::optional<SessionCheckpoint> decode_checkpoint(std::span<const std::byte> bytes) {
    CheckpointArchive archive{bytes.first(std::min(bytes.size(), kMaxEncodedCheckpoint + 1))};
    SessionCheckpoint checkpoint;
    visit_checkpoint(archive, checkpoint);
    checkpoint.snapshots = read_snapshots(archive);
    if (checkpoint.map) {
        checkpoint.map->name = clean_map_name(checkpoint.map->name);
    }
    const bool is_seven = checkpoint.dialect == snapshot::Dialect::seven;
    const bool fits = checkpoint.token_form == TokenForm::unknown ||
                      (checkpoint.token_form == TokenForm::seven) == is_seven;
    return archive.is_fully_read() && fits && checkpoint.is_consistent()
               ? std::optional{std::move(checkpoint)}
               : std::nullopt;
}

} // namespace tw::inspect
