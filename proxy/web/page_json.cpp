#include "proxy/web/page_json.h"

#include "map/game_layer.h"
#include "map/picture.h"
#include "proxy/record/json.h"
#include "proxy/web/page.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace tw::web {

namespace json = boost::json;

namespace {

/// The most rows that are sent for each direction (c2s, s2c): those with the most bits.
constexpr std::size_t kMaxRows = 64;

} // namespace

std::string traffic_json(const std::vector<std::vector<record::ByteLedgerRow>>& ledgers) {
    record::ByteLedger all;
    for (const auto& rows : ledgers) {
        for (const record::ByteLedgerRow& row : rows) {
            all.add_bytes(row.direction, row.group, record::BytePart::whole, row.name, row.total);
        }
    }
    json::array lines;
    for (const wire::Direction direction : {wire::Direction::c2s, wire::Direction::s2c}) {
        auto rows = all.rows(direction);
        rows.resize(std::min(rows.size(), kMaxRows));
        for (const record::ByteLedgerRow& row : rows) {
            lines.push_back(json::array{direction == wire::Direction::c2s ? "c2s" : "s2c",
                                        record::byte_group_name(row.group), row.name,
                                        row.total.bits, row.total.count});
        }
    }
    return record::json_text(json::object{{"k", "bytes"}, {"rows", std::move(lines)}});
}

namespace {

constexpr std::array kLayers{map::Layer::game,    map::Layer::front,   map::Layer::tele,
                             map::Layer::speedup, map::Layer::switch_, map::Layer::tune};

using TileBytes = std::vector<unsigned char>;

/// Encodes the byte that `pick` returns for each tile.
template <typename Pick>
TileBytes collect_tile_bytes(const map::PhysicsLayers& physics, Pick&& pick) {
    TileBytes plane;
    plane.reserve(static_cast<std::size_t>(physics.width()) *
                  static_cast<std::size_t>(physics.height()));
    for (int y = 0; y < physics.height(); ++y) {
        for (int x = 0; x < physics.width(); ++x) {
            plane.push_back(pick(map::TilePos{x, y}));
        }
    }
    return plane;
}

json::object tile_names_json(map::Layer layer, const TileBytes& plane) {
    std::array<bool, 256> used{};
    for (const unsigned char index : plane) {
        used.at(index) = true;
    }
    json::object names;
    for (std::size_t index = 1; index < used.size(); ++index) {
        const auto name = map::tile_name(layer, static_cast<std::uint8_t>(index));
        if (used.at(index) && !name.empty()) {
            names[std::to_string(index)] = name;
        }
    }
    return names;
}

json::object layer_json(const map::PhysicsLayers& physics, map::Layer layer) {
    const TileBytes plane =
        collect_tile_bytes(physics, [&](map::TilePos tile) { return physics.index(layer, tile); });
    json::object object{{"tiles", base64(plane)}, {"names", tile_names_json(layer, plane)}};
    if (layer == map::Layer::tele || layer == map::Layer::switch_ || layer == map::Layer::tune) {
        object["numbers"] = base64(collect_tile_bytes(physics, [&](map::TilePos tile) {
            const map::Location place = physics.at(tile);
            return layer == map::Layer::tele      ? place.tele.number
                   : layer == map::Layer::switch_ ? place.switch_.number
                                                  : place.tune.number;
        }));
    }
    return object;
}

json::array swatches_json() {
    json::array rows;
    for (const map::TileColor& color : map::tile_colors()) {
        rows.push_back(json::object{{"layer", map::layer_name(color.layer)},
                                    {"first", color.first},
                                    {"last", color.last},
                                    {"color", fmt::format("#{:06x}", color.rgb)},
                                    {"label", color.label}});
    }
    return rows;
}

} // namespace

std::string base64(const std::vector<unsigned char>& bytes) {
    std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                    static_cast<int>(bytes.size()));
    text.pop_back(); // removes the terminating zero
    return text;
}

std::string map_json(const map::PhysicsLayers& physics) {
    json::object layers;
    for (const map::Layer layer : kLayers) {
        if (physics.has(layer)) {
            layers[map::layer_name(layer)] = layer_json(physics, layer);
        }
    }
    return record::json_text(json::object{{"v", 1},
                                          {"width", physics.width()},
                                          {"height", physics.height()},
                                          {"layers", std::move(layers)},
                                          {"swatches", swatches_json()}}) +
           '\n';
}

std::shared_ptr<const std::string>
CompressedMapCache::compressed_map_json(const std::shared_ptr<const map::PhysicsLayers>& physics) {
    std::erase_if(texts_, [](const auto& each) { return each.first.expired(); });
    auto& text = texts_[physics];
    if (text == nullptr) {
        text = std::make_shared<const std::string>(gzip_text(map_json(*physics)));
    }
    return text;
}

namespace {

/// The names of the values of snapshot::FieldKind, in their order.
constexpr std::array<std::string_view, 6> kFieldKinds{"integer", "boolean", "tick",
                                                      "named",   "text",    "integers"};
static_assert(static_cast<std::size_t>(snapshot::FieldKind::integers) == kFieldKinds.size() - 1);

json::object field_json(const snapshot::FieldSpec& field) {
    json::object object{{"name", field.name},
                        {"kind", kFieldKinds.at(static_cast<std::size_t>(field.kind))},
                        {"offset", field.offset},
                        {"count", field.count}};
    if (field.names != nullptr) {
        json::array values;
        for (const snapshot::NamedValue& value : field.names->values) {
            values.push_back(json::array{value.value, value.name});
        }
        object[field.names->flags ? "flags" : "names"] = std::move(values);
        object["names_when"] = field.names_when;
    }
    return object;
}

json::object object_json(const snapshot::ObjectSpec& spec) {
    json::array fields;
    for (const snapshot::FieldSpec& field : spec.fields) {
        fields.push_back(field_json(field));
    }
    json::object object{{"name", spec.name},
                        {"event", spec.kind == snapshot::ObjectKind::event},
                        {"fields", std::move(fields)}};
    if (spec.position) {
        object["position"] = json::object{{"x", spec.position->x},
                                          {"y", spec.position->y},
                                          {"per_unit", spec.position->per_unit}};
    }
    if (spec.client) {
        if (spec.client->field) {
            object["client"] = *spec.client->field;
        } else {
            object["client"] = "id";
        }
    }
    return object;
}

} // namespace

std::string objects_json(const snapshot::ObjectSet& objects) {
    json::array list;
    for (const auto table : {snapshot::object_table(), objects.custom()}) {
        for (const snapshot::ObjectSpec& spec : table) {
            list.push_back(object_json(spec));
        }
    }
    return record::json_text(json::object{{"v", 1}, {"objects", std::move(list)}}) + '\n';
}

} // namespace tw::web
