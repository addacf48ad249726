// The keys of a snapshot's items, and of places on the map.

#include "map/tiles.h"
#include "proxy/filter/tables.h"

namespace tw::filter {

using record::FrontPlace;
using record::NumberedTile;
using record::SpeedupPlace;
using record::SwitchPlace;
using record::WorldPlace;
using snapshot::FieldKind;
using snapshot::FieldSpec;
using snapshot::ObjectSpec;

namespace {

constexpr std::uint16_t kClientInfoType = 11;
constexpr std::size_t kNameInts = 4;
/// Longest int string: six ints.
constexpr std::size_t kMaxStringInts = 6;

Value int_string(std::span<const std::int32_t> ints, Scratch& scratch) {
    const auto fitting = ints.first(std::min(ints.size(), kMaxStringInts));
    return Value::of(
        std::string_view{scratch.text.data(), snapshot::decode_int_string(fitting, scratch.text)});
}

template <int WorldPlace::*kMember>
Found number(const WorldPlace& place, Scratch& /*unused*/) {
    return number_value(place.*kMember);
}

/// A number or a text of a layer that may be absent.
template <auto kLayer, auto kMember>
Found of_layer(const WorldPlace& place, Scratch& /*unused*/) {
    const auto& layer = place.*kLayer;
    if (!layer) {
        return std::nullopt;
    }
    const auto& member = (*layer).*kMember;
    if constexpr (std::is_same_v<decltype(member), const std::string_view&>) {
        return Value::of(member);
    } else {
        return number_value(member);
    }
}

template <auto kMember>
Found of_switch(const WorldPlace& place, Scratch& /*unused*/) {
    if (!place.switch_tile) {
        return std::nullopt;
    }
    const auto& member = place.switch_tile->tile.*kMember;
    if constexpr (std::is_same_v<decltype(member), const std::string_view&>) {
        return Value::of(member);
    } else {
        return number_value(member);
    }
}

constexpr auto kFront = &WorldPlace::front;
constexpr auto kTele = &WorldPlace::tele;
constexpr auto kSpeedup = &WorldPlace::speedup;
constexpr auto kTune = &WorldPlace::tune;

constexpr std::array<KeyRow<WorldPlace>, 21> kPlaceKeys{{
    {"x", KeyKind::number, number<&WorldPlace::x>},
    {"y", KeyKind::number, number<&WorldPlace::y>},
    {"tile.x", KeyKind::number, number<&WorldPlace::tile_x>},
    {"tile.y", KeyKind::number, number<&WorldPlace::tile_y>},
    {"game", KeyKind::text,
     [](const WorldPlace& p, Scratch&) -> Found { return Value::of(p.game); }},
    {"index", KeyKind::number, [](const WorldPlace& p, Scratch&) { return number_value(p.index); }},
    {"front.type", KeyKind::text, of_layer<kFront, &FrontPlace::type>},
    {"front.index", KeyKind::number, of_layer<kFront, &FrontPlace::index>},
    {"tele.type", KeyKind::text, of_layer<kTele, &NumberedTile::type>},
    {"tele.index", KeyKind::number, of_layer<kTele, &NumberedTile::index>},
    {"tele.number", KeyKind::number, of_layer<kTele, &NumberedTile::number>},
    {"speedup.force", KeyKind::number, of_layer<kSpeedup, &SpeedupPlace::force>},
    {"speedup.max_speed", KeyKind::number, of_layer<kSpeedup, &SpeedupPlace::max_speed>},
    {"speedup.angle", KeyKind::number, of_layer<kSpeedup, &SpeedupPlace::angle>},
    {"switch.type", KeyKind::text, of_switch<&NumberedTile::type>},
    {"switch.index", KeyKind::number, of_switch<&NumberedTile::index>},
    {"switch.number", KeyKind::number, of_switch<&NumberedTile::number>},
    {"switch.delay", KeyKind::number,
     [](const WorldPlace& p, Scratch&) {
         return p.switch_tile ? number_value(p.switch_tile->delay) : std::nullopt;
     }},
    {"tune.type", KeyKind::text, of_layer<kTune, &NumberedTile::type>},
    {"tune.index", KeyKind::number, of_layer<kTune, &NumberedTile::index>},
    {"tune.number", KeyKind::number, of_layer<kTune, &NumberedTile::number>},
}};

std::string_view type_name(const ItemContext& context) {
    if (context.object() != nullptr) {
        return context.object()->name;
    }
    return context.item().key.type == snapshot::kDescriptorType ? "descriptor" : "";
}

Found item_uuid(const ItemContext& context, Scratch& scratch) {
    if (const ObjectSpec* object = context.object(); object != nullptr) {
        return object->type == 0 ? Found{uuid_value(object->uuid, scratch)} : std::nullopt;
    }
    const record::TypeNames* types = context.record().types;
    const auto* entry = types == nullptr ? nullptr : types->find(context.item().key.type);
    return entry == nullptr ? std::nullopt : Found{uuid_value(entry->uuid, scratch)};
}

/// The name of the player whose object this is.
Found item_player(const ItemContext& context, Scratch& scratch) {
    if (context.object() == nullptr) {
        return std::nullopt;
    }
    const snapshot::ItemView& item = context.item();
    const auto client = snapshot::client_of(*context.object(), item.key, item.data);
    const snapshot::SnapshotView& items = context.record().items;
    const auto info = client ? items.find({kClientInfoType, *client}) : std::nullopt;
    if (!info) {
        return std::nullopt;
    }
    const auto ints = items[*info].data;
    return int_string(ints.first(std::min(ints.size(), kNameInts)), scratch);
}

constexpr std::array<KeyRow<ItemContext>, 5> kItemKeys{{
    {"type", KeyKind::text,
     [](const ItemContext& c, Scratch&) -> Found { return Value::of(type_name(c)); }},
    {"type_id", KeyKind::number,
     [](const ItemContext& c, Scratch&) { return number_value(c.item().key.type); }},
    {"id", KeyKind::number,
     [](const ItemContext& c, Scratch&) { return number_value(c.item().key.id); }},
    {"uuid", KeyKind::text, item_uuid},
    {"player", KeyKind::text, item_player},
}};

bool visit_ints(std::span<const std::int32_t> ints, ValueVisitor& visitor) {
    return std::any_of(ints.begin(), ints.end(), [&](std::int32_t value) {
        return visitor.take(Value::of(std::int64_t{value}));
    });
}

/// The field of that name if the item is long enough to hold it: an older server sends fewer ints.
const FieldSpec* find_field(const ItemContext& context, std::string_view name) {
    if (context.object() == nullptr) {
        return nullptr;
    }
    for (const FieldSpec& field : context.object()->fields) {
        if (std::size_t{field.offset} + field.count > context.item().data.size()) {
            return nullptr;
        }
        if (field.name == name) {
            return &field;
        }
    }
    return nullptr;
}

bool visit_field(const FieldSpec& field, std::span<const std::int32_t> data, Scratch& scratch,
                 ValueVisitor& visitor) {
    const auto ints = data.subspan(field.offset, field.count);
    return field.kind == FieldKind::int_string ? visitor.take(int_string(ints, scratch))
                                               : visit_ints(ints, visitor);
}

} // namespace

std::span<const KeyRow<WorldPlace>> place_keys() {
    return kPlaceKeys;
}

std::span<const KeyRow<ItemContext>> item_keys() {
    return kItemKeys;
}

std::vector<std::string_view> tile_words(std::string_view key) {
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

ItemContext::ItemContext(const record::SnapshotRecord& record, std::size_t index)
    : record_{&record}, item_{record.items[index]},
      object_{record.types != nullptr ? record.types->object(item_.key.type)
                                      : snapshot::find_object(item_.key.type)} {}

const std::optional<WorldPlace>& ItemContext::place() {
    if (!located_ && record_->world != nullptr && object_ != nullptr) {
        place_ = record_->world->place(*object_, item_.data);
    }
    located_ = true;
    return place_;
}

bool visit_item(const Key& key, ItemContext& item, Scratch& scratch, ValueVisitor& visitor) {
    const auto row = static_cast<std::size_t>(key.rows[0]);
    switch (key.way) {
    case Key::Way::row: {
        const Found found = kItemKeys[row].read(item, scratch);
        return found && visitor.take(*found);
    }
    case Key::Way::place: {
        const auto& place = item.place();
        const Found found = place ? kPlaceKeys[row].read(*place, scratch) : std::nullopt;
        return found && visitor.take(*found);
    }
    case Key::Way::fields: {
        const FieldSpec* field = find_field(item, key.path);
        return field != nullptr && visit_field(*field, item.item().data, scratch, visitor);
    }
    case Key::Way::names: {
        const FieldSpec* field = find_field(item, key.path);
        return field != nullptr && field->names != nullptr &&
               snapshot::names_hold(field->names_when, field->offset, item.item().data) &&
               visit_names(*field->names, item.item().data[field->offset], visitor);
    }
    case Key::Way::data:
        return visit_ints(item.item().data, visitor);
    }
    return false;
}

} // namespace tw::filter
