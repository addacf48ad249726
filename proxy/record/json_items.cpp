#include "proxy/record/json_items.h"

#include <algorithm>
#include <array>
#include <string>

namespace tw::record {

using inspect::SnapshotRecord;
using snapshot::ItemView;
using snapshot::SnapshotView;

namespace {

/// With `changed`, every snapshot of this ordinal lists all items, so that a reader can start
/// there.
constexpr std::uint64_t kFullEvery = 250;

constexpr std::uint16_t kClientInfoType = 11;
/// Longest int string: six ints.
constexpr std::size_t kMaxIntString = 24;

std::string prepared_front(const snapshot::ObjectSpec& object) {
    std::string front = R"({"type":")" + std::string{object.name} + '"';
    if (object.type == 0) {
        const auto uuid = snapshot::format_uuid(object.uuid);
        front += R"(,"uuid":")" + std::string{uuid.data(), uuid.size()} + '"';
    }
    return front + R"(,"type_id":)";
}

/// An item nobody can name, up to its type number: descriptors, unknown UUIDs, unknown numbers.
void write_unknown_front(const SnapshotRecord& record, const ItemView& item, JsonBuffer& out) {
    const bool descriptor = item.key.type == snapshot::kDescriptorType;
    out.append(descriptor ? std::string_view{R"({"type":"descriptor")"}
                          : std::string_view{R"({"type":"")"});
    if (const auto* entry = record.types->find(item.key.type); entry != nullptr) {
        const auto uuid = snapshot::format_uuid(entry->uuid);
        out.append(std::string_view{R"(,"uuid":")"});
        out.append(std::string_view{uuid.data(), uuid.size()});
        out.append('"');
    }
    out.append(std::string_view{R"(,"type_id":)"});
}

void append_text(JsonBuffer& out, std::span<const std::int32_t> ints) {
    std::array<char, kMaxIntString> text{};
    const auto fitting = ints.first(std::min(ints.size(), text.size() / 4));
    const std::size_t length = snapshot::decode_int_string(fitting, text);
    out.append_string({text.data(), length});
}

} // namespace

ItemWriter::ItemWriter(ItemChoice choice, bool raw, const snapshot::ObjectSet& objects)
    : set_{&objects}, choice_{choice}, raw_{raw} {
    for (const auto& list : {snapshot::object_table(), objects.custom()}) {
        for (const snapshot::ObjectSpec& object : list) {
            prepare(object);
        }
    }
}

void ItemWriter::prepare(const snapshot::ObjectSpec& object) {
    PreparedObject prepared{.front = Literal{prepared_front(object)}, .fields = {}, .names = {}};
    for (const snapshot::FieldSpec& field : object.fields) {
        const std::string key = '"' + std::string{field.name} + "\":";
        prepared.fields.push_back({.key = Literal{prepared.fields.empty() ? key : ',' + key},
                                   .kind = field.kind,
                                   .offset = field.offset,
                                   .count = field.count});
        if (field.names != nullptr) {
            prepared.names.push_back({.key = Literal{key},
                                      .offset = field.offset,
                                      .names = field.names,
                                      .names_when = field.names_when});
        }
    }
    objects_.push_back(std::move(prepared));
}

void ItemWriter::write_fields(const PreparedObject& object, std::span<const std::int32_t> data,
                              JsonBuffer& out) {
    out.append(std::string_view{R"(,"fields":{)"});
    for (const PreparedField& field : object.fields) {
        if (std::size_t{field.offset} + field.count > data.size()) {
            break; // an older server sends fewer ints; what is there is told
        }
        out.append(field.key);
        const auto ints = data.subspan(field.offset, field.count);
        if (field.kind == snapshot::FieldKind::int_string) {
            append_text(out, ints);
        } else if (field.count > 1 || field.kind == snapshot::FieldKind::integers) {
            out.append_ints(ints);
        } else {
            out.append_int(ints.front());
        }
    }
    out.append('}');
}

void ItemWriter::write_names(const PreparedObject& object, std::span<const std::int32_t> data,
                             JsonBuffer& out) {
    bool any = false;
    for (const NamedField& field : object.names) {
        if (field.offset >= data.size()) {
            break;
        }
        if (!snapshot::names_hold(field.names_when, field.offset, data)) {
            continue;
        }
        const std::int32_t value = data[field.offset];
        if (!field.names->flags) {
            if (const auto name = field.names->find(value)) {
                out.append(any ? std::string_view{","} : std::string_view{R"(,"names":{)"});
                any = true;
                out.append(field.key);
                out.append('"');
                out.append(*name);
                out.append('"');
            }
        } else if (value != 0) {
            out.append(any ? std::string_view{","} : std::string_view{R"(,"names":{)"});
            any = true;
            out.append(field.key);
            write_flag_names(*field.names, value, out);
        }
    }
    if (any) {
        out.append('}');
    }
}

void write_flag_names(const snapshot::NameTable& names, std::int32_t value, JsonBuffer& out) {
    char separator = '[';
    const auto bits = static_cast<std::uint32_t>(value);
    for (const snapshot::NamedValue& flag : names.values) {
        const auto mask = static_cast<std::uint32_t>(flag.value);
        if ((bits & mask) == mask && mask != 0) {
            out.append(separator);
            out.append('"');
            out.append(flag.name);
            out.append('"');
            separator = ',';
        }
    }
    if (separator == '[') {
        out.append('[');
    }
    out.append(']');
}

void ItemWriter::write_player(const SnapshotRecord& record, std::uint16_t client, JsonBuffer& out) {
    constexpr std::size_t kNameInts = 4;
    const auto info = record.items.find({kClientInfoType, client});
    if (!info) {
        return;
    }
    out.append(std::string_view{R"(,"player":)"});
    append_text(out, record.items[*info].data.first(kNameInts));
}

void ItemWriter::write_place(const inspect::WorldPlace& place, JsonBuffer& out) {
    const auto member = [&](std::string_view key, std::int32_t value) {
        out.append(key);
        out.append_int(value);
    };
    const auto numbered = [&](std::string_view key, const inspect::NumberedTile& tile) {
        out.append(key);
        out.append_string(tile.type);
        member(R"(,"index":)", tile.index);
        member(R"(,"number":)", tile.number);
    };
    member(R"({"x":)", place.x);
    member(R"(,"y":)", place.y);
    member(R"(,"tile":[)", place.tile_x);
    member(",", place.tile_y);
    out.append(std::string_view{R"(],"game":)"});
    out.append_string(place.game);
    member(R"(,"index":)", place.index);
    if (place.front) {
        out.append(std::string_view{R"(,"front":{"type":)"});
        out.append_string(place.front->type);
        member(R"(,"index":)", place.front->index);
        out.append('}');
    }
    if (place.tele) {
        numbered(R"(,"tele":{"type":)", *place.tele);
        out.append('}');
    }
    if (place.speedup) {
        member(R"(,"speedup":{"force":)", place.speedup->force);
        member(R"(,"max_speed":)", place.speedup->max_speed);
        member(R"(,"angle":)", place.speedup->angle);
        out.append('}');
    }
    if (place.switch_tile) {
        numbered(R"(,"switch":{"type":)", place.switch_tile->tile);
        member(R"(,"delay":)", place.switch_tile->delay);
        out.append('}');
    }
    if (place.tune) {
        numbered(R"(,"tune":{"type":)", *place.tune);
        out.append('}');
    }
    out.append('}');
}

void ItemWriter::write_item(const SnapshotRecord& record, const ItemView& item,
                            JsonBuffer& out) const {
    const snapshot::ObjectSpec* spec = record.types->object(item.key.type);
    const PreparedObject* object = spec == nullptr ? nullptr : &objects_[set_->index_of(*spec)];
    if (object != nullptr) {
        out.append(object->front);
    } else {
        write_unknown_front(record, item, out);
    }
    out.append_int(std::int32_t{item.key.type});
    out.append(std::string_view{R"(,"id":)"});
    out.append_int(std::int32_t{item.key.id});
    if (object != nullptr) {
        write_fields(*object, item.data, out);
        write_names(*object, item.data, out);
        if (const auto client = snapshot::client_of(*spec, item.key, item.data)) {
            write_player(record, *client, out);
        }
        if (record.world != nullptr) {
            if (const auto place = record.world->place(*spec, item.data)) {
                out.append(std::string_view{R"(,"at":)"});
                write_place(*place, out);
            }
        }
    }
    if (raw_ || spec == nullptr || item.data.size() > spec->size) {
        out.append(std::string_view{R"(,"data":)"});
        out.append_ints(item.data);
    }
    out.append('}');
}

void ItemWriter::write(const SnapshotRecord& record, JsonBuffer& out) const {
    if (choice_ == ItemChoice::none || !record.rebuilt) {
        return;
    }
    const SnapshotView& now = record.items;
    const SnapshotView before = record.previous.value_or(SnapshotView{});
    const bool full =
        choice_ == ItemChoice::all || !record.previous || record.ordinal % kFullEvery == 0;
    if (full) {
        out.append(std::string_view{R"(,"full":true)"});
    }
    out.append(std::string_view{R"(,"items":[)"});
    bool any = false;
    std::size_t old = 0;
    // Removed items are gathered while walking both in key order.
    JsonBuffer removed;
    const auto remove = [&](std::uint32_t packed) {
        const auto key = snapshot::ItemKey::from_packed(packed);
        removed.append(removed.empty() ? std::string_view{"["} : std::string_view{",["});
        removed.append_int(std::int32_t{key.type});
        removed.append(',');
        removed.append_int(std::int32_t{key.id});
        removed.append(']');
    };
    for (std::size_t i = 0; i < now.size(); ++i) {
        const std::uint32_t key = now.keys()[i];
        for (; old < before.size() && before.keys()[old] < key; ++old) {
            remove(before.keys()[old]);
        }
        const bool known = old < before.size() && before.keys()[old] == key;
        const ItemView item = now[i];
        const bool same = known && std::ranges::equal(before[old].data, item.data);
        old += known ? 1 : 0;
        if (full || !same) {
            if (any) {
                out.append(',');
            }
            any = true;
            write_item(record, item, out);
        }
    }
    for (; old < before.size(); ++old) {
        remove(before.keys()[old]);
    }
    out.append(std::string_view{R"(],"removed":[)"});
    out.append(removed.view());
    out.append(']');
}

} // namespace tw::record
