#include "proxy/web/map_design.h"

#include "map/items.h"
#include "map/layers.h"
#include "map/map.h"
#include "proxy/record/json.h"
#include "proxy/web/access.h"
#include "proxy/web/page_json.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace tw::web {

namespace {

// Limits of what is sent of one map. Layers and images beyond the limits are left out.
constexpr std::size_t kMaxFileBytes = std::size_t{8} << 20U;
constexpr std::size_t kMaxLayers = 64;
constexpr std::size_t kMaxTileBytes = std::size_t{32} << 20U; ///< in all layers together
constexpr std::size_t kMaxBlockBytes = kMaxTileBytes / 4;
constexpr std::size_t kMaxImages = 32;
constexpr std::size_t kMaxImageBytes = std::size_t{64} << 20U; ///< in all images together
constexpr std::int32_t kMaxImageSide = 1024;

constexpr std::int32_t kTileColumns = 16; ///< number of tiles in a row and in a column of an image
constexpr std::size_t kTileBytes = 4;     ///< index, flags, two unused bytes
constexpr std::int32_t kFullParallax = 100;

/// The index of a group and of a layer in the map. The game draws layers in ascending order.
using GroupAndLayer = std::pair<std::uint32_t, std::size_t>;

bool moves_with_game(const map::Map& map, std::uint32_t group) {
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
            moves_with_game(map, *groups[i])) {
            places.emplace_back(*groups[i], i);
        }
    }
    std::ranges::sort(places);
    places.resize(std::min(places.size(), kMaxLayers));
    return places;
}

std::size_t image_bytes(const map::Image& image) {
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
using Images = std::map<std::int32_t, std::optional<map::Image>>;

void add_image(Images& images, const map::Map& map, std::int32_t number, std::size_t& bytes_left) {
    if (number < 0 || images.size() == kMaxImages || images.contains(number)) {
        return;
    }
    auto image = find_embedded_image(map, static_cast<std::size_t>(number));
    if (image && image_bytes(*image) > bytes_left) {
        image.reset();
    }
    bytes_left -= image ? image_bytes(*image) : 0;
    images.emplace(number, std::move(image));
}

boost::json::array images_json(const Images& images) {
    boost::json::array list;
    for (const auto& [number, image] : images) {
        if (image) {
            list.push_back(boost::json::object{
                {"number", number}, {"width", image->width}, {"height", image->height}});
        }
    }
    return list;
}

/// Returns index and flags of a layer's tiles in base64; nullopt if the tiles are unusable or
/// larger than `bytes_left`. Subtracts the tiles' size from `bytes_left`.
std::optional<std::string> tiles_text(const map::Map& map, const map::TileLayer& layer,
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

boost::json::object design_layer_json(const map::Map& map, std::uint32_t group,
                                      const map::TileLayer& layer) {
    const auto game = map.physics_layer(map::Layer::game);
    // The game ignores the offset of the group that has the game layer.
    const auto place = game && game->group == group ? map::Group{} : *map.group(group);
    const auto channel = [](std::int32_t value) { return std::clamp(value, 0, 255); };
    const map::Color& color = layer.color;
    return {{"image", nullptr},
            {"width", layer.width},
            {"height", layer.height},
            {"offset", boost::json::array{place.offset_x, place.offset_y}},
            {"color", boost::json::array{channel(color.r), channel(color.g), channel(color.b),
                                         channel(color.a)}}};
}

map::Result<map::Map> parse_limited(std::span<const std::byte> file) {
    return map::Map::parse({file.begin(), file.end()}, {.max_file_bytes = kMaxFileBytes,
                                                        .max_block_bytes = kMaxBlockBytes,
                                                        .max_tiles = kMaxBlockBytes / kTileBytes});
}

} // namespace

std::optional<std::string> map_design_json(std::span<const std::byte> file) {
    const auto map = parse_limited(file);
    if (!map) {
        return std::nullopt;
    }
    Images images;
    boost::json::array layers;
    std::size_t tile_bytes_left = kMaxTileBytes;
    std::size_t image_bytes_left = kMaxImageBytes;
    for (const auto& [group, index] : find_design_layers(*map)) {
        const auto item = map->layer(index);
        const auto& layer = std::get<map::TileLayer>(item->content);
        if (auto tiles = tiles_text(*map, layer, tile_bytes_left)) {
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
    return record::json_text(boost::json::object{
               {"v", 1}, {"images", std::move(sent)}, {"layers", std::move(layers)}}) +
           '\n';
}

std::optional<std::string> image_pixels(std::span<const std::byte> file, std::uint32_t number) {
    const auto map = parse_limited(file);
    const auto image = map ? find_embedded_image(*map, number) : std::nullopt;
    if (!image) {
        return std::nullopt;
    }
    const auto pixels = map::read_pixels(*map, *image);
    return pixels ? std::optional{std::string{reinterpret_cast<const char*>(pixels->bytes().data()),
                                              image_bytes(*image)}}
                  : std::nullopt;
}

namespace {

/// Returns the map file of the request's session; null if there is none.
std::shared_ptr<const std::vector<std::byte>> find_file(const PageData& data,
                                                        const Request& request) {
    const auto session = query_number<std::uint32_t>(request.query, "session");
    return session ? data.map_of_session(*session).file_bytes : nullptr;
}

void send_or_not_found(std::optional<std::string> body, const char* content_type,
                       const Respond& respond) {
    if (!body) {
        return respond({.status = 404,
                        .body = "no such map or image, or it is too large; an example: "
                                "/api/map_design?session=1\n"});
    }
    respond({.content_type = content_type, .body = *std::move(body)});
}

} // namespace

void send_map_design(RequestContext& context, const Request& request, const Respond& respond) {
    const auto file = find_file(context.data, request);
    send_or_not_found(file ? map_design_json(*file) : std::nullopt, "application/json", respond);
}

void send_map_image(RequestContext& context, const Request& request, const Respond& respond) {
    const auto file = find_file(context.data, request);
    const auto number = query_number<std::uint32_t>(request.query, "image");
    send_or_not_found(file && number ? image_pixels(*file, *number) : std::nullopt,
                      "application/octet-stream", respond);
}

} // namespace tw::web
