#include "proxy/filter/schema_keys.h"

#include "map/tiles.h"

#include <algorithm>

namespace tw::filter {

using record::Record;

namespace {

constexpr std::size_t kTypes = std::variant_size_v<Record>;
using KeysByType = std::array<SchemaKeys<Record>, kTypes>;

template <std::size_t kType>
SchemaKeys<Record> make_keys() {
    KeyCollector<Record> keys;
    keys.add_schema(
        {},
        [](const Record& record) {
            return std::optional{record::TypedHeader{&std::get<kType>(record)->head, kType}};
        },
        record::kHeadSchema);
    using Concrete = std::remove_cvref_t<decltype(*std::get<kType>(Record{}))>;
    keys.add_schema(
        {}, [](const Record& record) { return std::get<kType>(record); },
        record::schema_of(Concrete{}));
    return keys.take_keys();
}

template <std::size_t... kType>
KeysByType make_all_keys(std::index_sequence<kType...> /*unused*/) {
    return {make_keys<kType>()...};
}

const KeysByType& keys_by_type() {
    static const KeysByType all = make_all_keys(std::make_index_sequence<kTypes>{});
    return all;
}

} // namespace

bool resolve_record_key(Key& key) {
    std::size_t types = 0;
    for (std::size_t type = 0; type < kTypes; ++type) {
        const auto* const row = find_row(keys_by_type()[type], key.name);
        key.of_records[type] = row;
        if (row != nullptr) {
            key.kind = types != 0 && key.kind != row->kind ? KeyKind::any : row->kind;
            ++types;
        }
    }
    key.common = types == kTypes;
    return types != 0;
}

OptionalValue read_record(const Key& key, const Record& record, bool show_secrets,
                          FormatBuffer& buffer) {
    const auto* const row = key.of_records[record.index()];
    return row == nullptr ? std::nullopt : row->read(record, {buffer, show_secrets});
}

void add_record_keys(std::vector<std::string>& names) {
    for (const auto& keys : keys_by_type()) {
        for (const auto& key : keys) {
            names.push_back(key.name);
        }
    }
}

std::vector<std::string_view> possible_record_words(std::string_view key) {
    for (const auto& keys : keys_by_type()) {
        if (const auto* const row = find_row(keys, key); row != nullptr && !row->words.empty()) {
            return row->words;
        }
    }
    return {};
}

using record::RecordItem;
using snapshot::FieldKind;
using snapshot::FieldSpec;
using snapshot::ObjectSpec;

namespace {

template <typename From, typename Schema>
SchemaKeys<From> keys_of(const Schema& schema) {
    KeyCollector<From> keys;
    keys.add_schema(
        {}, [](const From& from) { return &from; }, schema);
    return keys.take_keys();
}

bool visit_ints(std::span<const std::int32_t> ints, ValueVisitor& visitor) {
    return std::ranges::any_of(ints, [&](std::int32_t value) {
        return visitor.receive_value(Value::of(std::int64_t{value}));
    });
}

/// Returns the item's field with this name; null if the item is too short for the field, because
/// old servers send fewer ints, or if no session received the field.
const FieldSpec* find_field(const FilteredItem& context, std::string_view name) {
    if (context.object() == nullptr) {
        return nullptr;
    }
    for (const FieldSpec& field : context.object()->fields) {
        if (std::size_t{field.offset} + field.count > context.item().data.size()) {
            return nullptr;
        }
        if (field.name == name) {
            return context.was_int_received(field.offset) ? &field : nullptr;
        }
    }
    return nullptr;
}

bool visit_field(const FieldSpec& field, std::span<const std::int32_t> data, FormatBuffer& buffer,
                 ValueVisitor& visitor) {
    const auto ints = data.subspan(field.offset, field.count);
    return field.kind == FieldKind::int_string
               ? visitor.receive_value(int_string_value(ints, buffer))
               : visit_ints(ints, visitor);
}

} // namespace

Value int_string_value(std::span<const std::int32_t> ints, FormatBuffer& buffer) {
    const auto fitting = ints.first(std::min(ints.size(), snapshot::kMaxStringInts));
    return Value::of(
        std::string_view{buffer.text.data(), snapshot::decode_int_string(fitting, buffer.text)});
}

const SchemaKeys<map::Location>& place_keys() {
    static const auto keys = keys_of<map::Location>(record::kPlaceSchema);
    return keys;
}

const SchemaKeys<RecordItem>& item_keys() {
    static const auto keys = keys_of<RecordItem>(record::kItemSchema);
    return keys;
}

std::vector<std::string_view> tile_names(std::string_view key) {
    std::vector<std::string_view> words;
    for (int i = 0; i < map::kPhysicsLayers; ++i) {
        const auto layer = static_cast<map::Layer>(i);
        const std::string type = std::string{map::layer_name(layer)} + ".type";
        if (key == type || (layer == map::Layer::game && key == "game")) {
            for (unsigned index = 0; index <= UINT8_MAX; ++index) {
                words.push_back(map::tile_name(layer, static_cast<std::uint8_t>(index)));
            }
        }
    }
    return words;
}

FilteredItem::FilteredItem(const record::SnapshotRecord& record, std::size_t index)
    : shown_{&record, record.items[index], nullptr}, index_{index} {
    const std::uint16_t type = item().key.type;
    shown_.object = record.types != nullptr ? record.types->object(type)
                                            : snapshot::find_object(type, snapshot::Dialect::six);
}

const std::optional<map::Location>& FilteredItem::place() {
    if (!located_ && shown_.record->tile_map != nullptr && object() != nullptr) {
        place_ = shown_.record->tile_map->tiles_at(*object(), item().data);
    }
    located_ = true;
    return place_;
}

bool FilteredItem::visit_sessions(ValueVisitor& visitor) const {
    bool enough = false;
    if (const record::Sightings* sightings = shown_.record->sightings) {
        sightings->for_each_session(index_, [&](std::uint32_t session) {
            enough = visitor.receive_value(Value::of(std::int64_t{session}));
            return enough;
        });
    }
    return enough;
}

bool visit_item(const Key& key, FilteredItem& item, FormatBuffer& buffer, ValueVisitor& visitor) {
    const ReadContext reading{buffer, false}; // items contain no secrets
    switch (key.way) {
    case Key::Location::row: {
        const OptionalValue found = key.of_item->read(item.record_item(), reading);
        return found && visitor.receive_value(*found);
    }
    case Key::Location::place: {
        const auto& place = item.place();
        const OptionalValue found = place ? key.of_place->read(*place, reading) : std::nullopt;
        return found && visitor.receive_value(*found);
    }
    case Key::Location::fields: {
        const FieldSpec* field = find_field(item, key.path);
        return field != nullptr && visit_field(*field, item.item().data, buffer, visitor);
    }
    case Key::Location::names: {
        const FieldSpec* field = find_field(item, key.path);
        return field != nullptr && field->names != nullptr &&
               snapshot::names_hold(field->names_when, field->offset, item.item().data) &&
               visit_names(*field->names, item.item().data[field->offset], visitor);
    }
    case Key::Location::data:
        return visit_ints(item.item().data, visitor);
    case Key::Location::seen_by:
        return item.visit_sessions(visitor);
    case Key::Location::removed: // only lines of recordings have this key
        break;
    }
    return false;
}

} // namespace tw::filter
