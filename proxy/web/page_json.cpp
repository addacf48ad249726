#include "proxy/web/page_json.h"

#include "map/game_layer.h"
#include "map/items.h"
#include "map/layers.h"
#include "map/map.h"
#include "map/picture.h"
#include "proxy/record/json.h"
#include "proxy/web/page_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace tw::web {

namespace json = boost::json;

namespace {

/// The maximum number of rows for each direction (c2s, s2c).
constexpr std::size_t kMaxTrafficRows = 64;

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
        rows.resize(std::min(rows.size(), kMaxTrafficRows));
        for (const record::ByteLedgerRow& row : rows) {
            lines.push_back(json::array{direction == wire::Direction::c2s ? "c2s" : "s2c",
                                        record::byte_group_name(row.group), row.name,
                                        row.total.bits, row.total.count});
        }
    }
    return record::json_text(json::object{{"k", "bytes"}, {"rows", std::move(lines)}});
}

namespace {

constexpr std::array kPhysicsLayers{map::Layer::game,    map::Layer::front,   map::Layer::tele,
                                    map::Layer::speedup, map::Layer::switch_, map::Layer::tune};

using TileBytes = std::vector<unsigned char>;

std::string base64(const TileBytes& bytes) {
    std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                    static_cast<int>(bytes.size()));
    text.pop_back(); // removes the terminating zero
    return text;
}

/// Returns the bytes that `pick` returns for the tiles, row by row.
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

std::string map_json(const map::PhysicsLayers& physics) {
    json::object layers;
    for (const map::Layer layer : kPhysicsLayers) {
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
constexpr std::array<std::string_view, 6> kFieldKindNames{"integer", "boolean", "tick",
                                                          "named",   "text",    "integers"};
static_assert(static_cast<std::size_t>(snapshot::FieldKind::integers) ==
              kFieldKindNames.size() - 1);

json::object field_json(const snapshot::FieldSpec& field) {
    json::object object{{"name", field.name},
                        {"kind", kFieldKindNames.at(static_cast<std::size_t>(field.kind))},
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

namespace {

// Limits for the layers and images of one map. Further layers and images are left out.
constexpr std::size_t kMaxFileBytes = std::size_t{8} << 20U;
constexpr std::size_t kMaxLayers = 64;
constexpr std::size_t kMaxTileBytes = std::size_t{32} << 20U; ///< in all layers together
constexpr std::size_t kMaxBlockBytes = kMaxTileBytes / 4;
constexpr std::size_t kMaxImages = 32;
constexpr std::size_t kMaxImageBytes = std::size_t{64} << 20U; ///< in all images together
constexpr std::int32_t kMaxImageSide = 1024;

constexpr std::int32_t kTileColumns = 16; ///< number of tiles in a row or column of an image
constexpr std::size_t kTileBytes = 4;     ///< index, flags, two unused bytes
constexpr std::int32_t kFullParallax = 100;

/// The index of a group and of a layer in the map. The game draws layers in ascending order.
using GroupAndLayer = std::pair<std::uint32_t, std::size_t>;

/// Returns whether the layers of a group move at the same speed as the game layer.
bool moves_with_game_layer(const map::Map& map, std::uint32_t group) {
    const auto game = map.physics_layer(map::Layer::game);
    const auto item = map.group(group);
    return (game && game->group == group) ||
           (item && item->parallax_x == kFullParallax && item->parallax_y == kFullParallax);
}

std::vector<GroupAndLayer> find_design_layers(const map::Map& map) {
    const auto groups = map.groups_of_layers();
    std::vector<GroupAndLayer> places;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto item = map.layer(i);
        const auto* const tiles = item ? std::get_if<map::TileLayer>(&item->content) : nullptr;
        if (groups[i] && tiles != nullptr && (tiles->flags & map::kPhysicsLayerFlags) == 0 &&
            moves_with_game_layer(map, *groups[i])) {
            places.emplace_back(*groups[i], i);
        }
    }
    std::ranges::sort(places);
    places.resize(std::min(places.size(), kMaxLayers));
    return places;
}

std::size_t pixel_bytes(const map::Image& image) {
    constexpr std::size_t kPixelBytes = 4;
    return kPixelBytes * static_cast<std::size_t>(image.width) *
           static_cast<std::size_t>(image.height);
}

std::optional<map::Image> find_embedded_image(const map::Map& map, std::size_t number) {
    constexpr std::int32_t kRgba = 1;
    const auto fits = [](std::int32_t side) {
        return side > 0 && side <= kMaxImageSide && side % kTileColumns == 0;
    };
    auto image = map::read_image(map, number);
    if (!image || image->external || image->format.value_or(kRgba) != kRgba ||
        !fits(image->width) || !fits(image->height)) {
        return std::nullopt;
    }
    return image;
}

/// The images that the visible layers use, by index in the map; nullopt for an image that is not
/// sent to the page.
using DesignImages = std::map<std::int32_t, std::optional<map::Image>>;

void add_image(DesignImages& images, const map::Map& map, std::int32_t number,
               std::size_t& bytes_left) {
    if (number < 0 || images.size() == kMaxImages || images.contains(number)) {
        return;
    }
    auto image = find_embedded_image(map, static_cast<std::size_t>(number));
    if (image && pixel_bytes(*image) > bytes_left) {
        image.reset();
    }
    bytes_left -= image ? pixel_bytes(*image) : 0;
    images.emplace(number, std::move(image));
}

json::array images_json(const DesignImages& images) {
    json::array list;
    for (const auto& [number, image] : images) {
        if (image) {
            list.push_back(json::object{
                {"number", number}, {"width", image->width}, {"height", image->height}});
        }
    }
    return list;
}

/// Returns the index and flags of each tile of a layer, in base64. Subtracts the size of the tiles
/// from `bytes_left`. Returns nullopt if the tiles are invalid or larger than `bytes_left`.
std::optional<std::string> tiles_base64(const map::Map& map, const map::TileLayer& layer,
                                        std::size_t& bytes_left) {
    const map::Datafile& file = map.datafile();
    const auto count = map::count_tiles(layer, file.limits());
    const auto block = static_cast<std::size_t>(layer.data);
    if (!count || layer.data < 0 || block >= file.block_count()) {
        return std::nullopt;
    }
    const std::size_t bytes =
        std::max<std::size_t>(*count * kTileBytes, file.block_info(block).size);
    if (bytes > bytes_left) {
        return std::nullopt;
    }
    bytes_left -= bytes;
    const auto tiles = map::read_tiles(map, layer);
    if (!tiles) {
        return std::nullopt;
    }
    std::vector<unsigned char> sent;
    sent.reserve(*count * 2);
    for (std::size_t at = 0; at < *count * kTileBytes; at += kTileBytes) {
        sent.push_back(std::to_integer<unsigned char>(tiles->bytes()[at]));
        sent.push_back(std::to_integer<unsigned char>(tiles->bytes()[at + 1]));
    }
    return base64(sent);
}

json::object design_layer_json(const map::Map& map, std::uint32_t group,
                               const map::TileLayer& layer) {
    const auto game = map.physics_layer(map::Layer::game);
    // The game ignores the offset of the group that has the game layer.
    const auto place = game && game->group == group ? map::Group{} : *map.group(group);
    const auto channel = [](std::int32_t value) { return std::clamp(value, 0, 255); };
    const map::Color& color = layer.color;
    return {{"image", nullptr},
            {"width", layer.width},
            {"height", layer.height},
            {"offset", json::array{place.offset_x, place.offset_y}},
            {"color",
             json::array{channel(color.r), channel(color.g), channel(color.b), channel(color.a)}}};
}

map::Result<map::Map> parse_map_within_limits(std::span<const std::byte> file) {
    return map::Map::parse({file.begin(), file.end()}, {.max_file_bytes = kMaxFileBytes,
                                                        .max_block_bytes = kMaxBlockBytes,
                                                        .max_tiles = kMaxBlockBytes / kTileBytes});
}

} // namespace

std::optional<std::string> map_design_json(std::span<const std::byte> file) {
    const auto map = parse_map_within_limits(file);
    if (!map) {
        return std::nullopt;
    }
    DesignImages images;
    json::array layers;
    std::size_t tile_bytes_left = kMaxTileBytes;
    std::size_t image_bytes_left = kMaxImageBytes;
    for (const auto& [group, index] : find_design_layers(*map)) {
        const auto item = map->layer(index);
        const auto& layer = std::get<map::TileLayer>(item->content);
        if (auto tiles = tiles_base64(*map, layer, tile_bytes_left)) {
            auto object = design_layer_json(*map, group, layer);
            add_image(images, *map, layer.image, image_bytes_left);
            if (const auto image = images.find(layer.image);
                image != images.end() && image->second) {
                object["image"] = layer.image;
            }
            object["tiles"] = *std::move(tiles);
            layers.push_back(std::move(object));
        }
    }
    auto sent = images_json(images);
    if (sent.empty()) {
        layers.clear();
    }
    return record::json_text(
               json::object{{"v", 1}, {"images", std::move(sent)}, {"layers", std::move(layers)}}) +
           '\n';
}

std::optional<std::string> image_pixels(std::span<const std::byte> file, std::uint32_t number) {
    const auto map = parse_map_within_limits(file);
    const auto image = map ? find_embedded_image(*map, number) : std::nullopt;
    if (!image) {
        return std::nullopt;
    }
    const auto pixels = map::read_pixels(*map, *image);
    return pixels ? std::optional{std::string{reinterpret_cast<const char*>(pixels->bytes().data()),
                                              pixel_bytes(*image)}}
                  : std::nullopt;
}

} // namespace tw::web
