#include "proxy/record/records.h"

#include "map/game_layer.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace tw::record {

namespace {

/// Returns the number of descriptor items. They are the first items, because their type is 0.
std::size_t count_descriptors(const snapshot::SnapshotView& items) {
    const auto keys = items.keys();
    const auto behind =
        std::lower_bound(keys.begin(), keys.end(), (snapshot::kDescriptorType + 1U) << 16U);
    return static_cast<std::size_t>(behind - keys.begin());
}

/// Returns whether the first `count` items of two snapshots are equal.
bool have_same_first_items(const snapshot::SnapshotView& left, const snapshot::SnapshotView& right,
                           std::size_t count) {
    if (left.size() < count || right.size() < count) {
        return false;
    }
    const auto same = [](const auto& a, const auto& b, std::size_t size) {
        return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(size), b.begin());
    };
    return same(left.keys(), right.keys(), count) && same(left.ends(), right.ends(), count) &&
           (count == 0 || same(left.data(), right.data(), left.ends()[count - 1]));
}

snapshot::Dialect other_dialect(snapshot::Dialect dialect) {
    return dialect == snapshot::Dialect::six ? snapshot::Dialect::seven : snapshot::Dialect::six;
}

} // namespace

std::optional<WorldPosition> world_position(const snapshot::ObjectSpec& object,
                                            std::span<const std::int32_t> data) {
    const auto position = snapshot::position_of(object, data);
    if (!position) {
        return std::nullopt;
    }
    const auto per_unit = static_cast<double>(position->per_unit);
    return WorldPosition{static_cast<double>(data[position->x]) / per_unit,
                         static_cast<double>(data[position->y]) / per_unit};
}

std::optional<map::Location> TileMap::tiles_at(const snapshot::ObjectSpec& object,
                                               std::span<const std::int32_t> data) const {
    const auto position = world_position(object, data);
    if (!position) {
        return std::nullopt;
    }
    map::Location at = physics_->locate(position->x, position->y);
    // The position from locate() is imprecise far from the origin, because it is computed with
    // floats.
    at.position = {static_cast<int>(std::lround(position->x)),
                   static_cast<int>(std::lround(position->y))};
    return at;
}

PositionFault TileMap::check_position(int x, int y) const {
    const map::WorldPos centre{x, y};
    if (physics_->beyond_border(centre)) {
        return PositionFault::outside_map;
    }
    return physics_->tee_in_solid(centre) ? PositionFault::inside_solid : PositionFault::none;
}

map::Location TileMap::tiles_at_impossible_position(int x, int y) const {
    const map::WorldPos centre{x, y};
    const auto wall =
        physics_->beyond_border(centre) ? std::nullopt : physics_->wall_at_tee(centre);
    map::Location at = wall ? physics_->at(*wall) : physics_->locate(centre);
    at.position = centre;
    return at;
}

void ItemTypes::learn_types(const snapshot::SnapshotView& items,
                            const snapshot::SnapshotView& learned) {
    const std::size_t count = count_descriptors(items);
    if (have_same_first_items(items, learned, count)) {
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const snapshot::ItemView item = items[i];
        const auto uuid = snapshot::descriptor_uuid(item.data);
        if (item.key.id < snapshot::kFirstUuidType || !uuid) {
            continue;
        }
        const auto at = std::ranges::lower_bound(entries_, item.key.id, {}, &TypeInfo::type);
        if (at != entries_.end() && at->type == item.key.id) {
            if (at->uuid != *uuid) {
                *at = {item.key.id, *uuid, objects_->find(*uuid)};
            }
        } else if (entries_.size() < kMaxTypes) {
            entries_.insert(at, {item.key.id, *uuid, objects_->find(*uuid)});
        }
    }
}

const ItemTypes::TypeInfo* ItemTypes::find(std::uint16_t type) const {
    const auto at = std::ranges::lower_bound(entries_, type, {}, &TypeInfo::type);
    return at != entries_.end() && at->type == type ? &*at : nullptr;
}

const snapshot::ObjectSpec* ItemTypes::object(std::uint16_t type) const {
    if (type < snapshot::kFirstUuidType) {
        const snapshot::ObjectSpec* const object = objects_->find(type, dialect_);
        return object == nullptr && allows_both_dialects_
                   ? objects_->find(type, other_dialect(dialect_))
                   : object;
    }
    const TypeInfo* entry = find(type);
    return entry == nullptr ? nullptr : entry->object;
}

namespace {

std::string type_text(const FindingItem& item) {
    return item.type.empty() ? fmt::format("type {}", item.type_id)
                             : escape_for_terminal(item.type);
}

std::string describe_item(const FindingItem& item, std::string_view field) {
    std::string text = fmt::format("{} {}", type_text(item), item.id);
    return field.empty() ? text : text + ' ' + escape_for_terminal(field);
}

/// Returns the part of a finding's text that describes the item.
std::string item_text(const FindingRecord& record) {
    const FindingItem& item = *record.item;
    if (record.id == FindingId::snapshot_size_differs && record.value && record.limit) {
        const std::string has =
            *record.value == 0
                ? "states its number of ints in each delta"
                : "has " + count_with_noun(static_cast<std::uint64_t>(*record.value), "int[s]");
        return fmt::format("{} {} instead of {} (seen in {})", type_text(item), has, *record.limit,
                           describe_item(item, {}));
    }
    if (record.id == FindingId::snapshot_size_out_of_range && item.type.empty()) {
        return fmt::format("misread as type {} (not the real type)", item.type_id);
    }
    std::string text = describe_item(item, record.field);
    if (record.id == FindingId::snapshot_explained && record.value && record.expected) {
        text += fmt::format(" {} instead of {}", *record.value, *record.expected);
    }
    return text;
}

} // namespace

Severity severity_of(const FindingRecord& record) {
    const bool ends_silence = (record.id == FindingId::session_server_silent ||
                               record.id == FindingId::session_unanswered) &&
                              record.detail == "ended";
    return ends_silence ? Severity::info : finding_info(record.id).severity;
}

std::optional<snapshot::Tick> fault_begin_tick(const FindingRecord& record) {
    return record.id == FindingId::snapshot_size_differs && record.since_tick ? record.since_tick
                                                                              : record.tick;
}

std::string describe_finding(const FindingRecord& record) {
    const FindingInfo& info = finding_info(record.id);
    std::string line = fmt::format("{} {}: session {}", severity_name(severity_of(record)),
                                   info.name, record.head.session);
    if (const auto first = fault_begin_tick(record)) {
        line += fmt::format(", {}tick {}", first == record.tick ? "" : "since ", *first);
    }
    if (record.item) {
        line += ", " + item_text(record);
    }
    if (record.candidates) {
        line += ", " + count_with_noun(record.candidates->count, "candidate[s]");
        if (!record.item && !record.candidates->likeliest.empty()) {
            const CauseCandidate& first = record.candidates->likeliest.front();
            line += fmt::format(" (the likeliest: {})", describe_item(first.item, first.field));
        }
    }
    if (record.crc_wanted && record.crc_got) {
        line += fmt::format(", checksum {} instead of {}", *record.crc_got, *record.crc_wanted);
    }
    const std::string_view name = finding_display_name(info.name, record.name);
    if (!name.empty()) {
        line += ", " + escape_for_terminal(name);
    }
    line += record.id == FindingId::snapshot_client_stalled && record.value
                ? fmt::format(". The client got no usable snapshot for {} ms; its game froze.",
                              *record.value)
                : fmt::format(". {}", info.sentence);
    if (!record.detail.empty() && name.empty() == record.name.empty()) {
        line += fmt::format(" ({})", escape_for_terminal(record.detail));
    }
    return line;
}

std::string describe_explained_mismatch(const FindingRecord& explained) {
    const std::string line = describe_finding(explained);
    const FindingInfo& info = finding_info(FindingId::snapshot_crc_mismatch);
    return fmt::format("{} {}{}", severity_name(info.severity), info.name,
                       line.substr(line.find(": ")));
}

std::string client_address_text(std::string address_and_port, const std::string& key) {
    if (key.empty()) {
        return address_and_port;
    }
    const auto colon = address_and_port.rfind(':');
    const std::string address = address_and_port.substr(0, colon);
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(address.data()), address.size(), digest.data(),
         &length);
    return fmt::format("client-{:02x}{:02x}{:02x}{:02x}:{}", digest[0], digest[1], digest[2],
                       digest[3], address_and_port.substr(colon + 1));
}

} // namespace tw::record
