#include "map/describe.h"

#include "map/layers.h"

#include <algorithm>
#include <array>
#include <variant>

namespace tw::map {
namespace {

std::string rejects(std::string_view why) {
    return "rejects:" + std::string{why};
}

} // namespace

MapAcceptance judge(const Map& map) {
    Warnings warnings = map.warnings();
    const auto physics = map.physics(&warnings);
    return judge(warnings, physics);
}

MapAcceptance judge(const Warnings& warnings, const Result<PhysicsLayers>& physics) {
    if (!physics) {
        return judge(physics.error());
    }
    const auto strict = warnings.first_strict();
    return {strict ? rejects(warning_info(*strict).name) : "accepts", "accepts"};
}

MapAcceptance judge(const MapError& error) {
    const std::string acceptance = rejects(error_info(error.code).name);
    return {acceptance, acceptance};
}

namespace {

ContainerDescription describe_container(const Datafile& file) {
    ContainerDescription container{
        .header = file.header(),
        .size_field = file.size_field(),
        .swaplen_field = file.swaplen_field(),
        .trailing_bytes = file.trailing_bytes(),
        .item_types = {file.item_types().begin(), file.item_types().end()},
        .unreadable_blocks = {},
        .uuid_types = uuid_types(file)};
    for (std::size_t i = 0; i < file.block_count(); ++i) {
        const auto block = file.block(static_cast<std::int64_t>(i));
        if (!block && block.error().code != MapErrc::block_empty) {
            container.unreadable_blocks.push_back(i);
        }
    }
    return container;
}

ImagesDescription describe_images(const Map& map) {
    ImagesDescription images{.total = image_count(map), .external = 0, .versions = {}};
    for (std::size_t i = 0; i < images.total; ++i) {
        if (const auto image = read_image(map, i)) {
            images.external += image->external ? 1U : 0U;
            images.versions.insert(image->version);
        }
    }
    return images;
}

EnvelopesDescription describe_envelopes(const Map& map) {
    EnvelopesDescription envelopes;
    envelopes.total = envelope_count(map);
    for (std::size_t i = 0; i < envelopes.total; ++i) {
        if (const auto envelope = read_envelope(map, i)) {
            envelopes.versions.insert(envelope->version);
            envelopes.item_ints.insert(envelope->item_ints);
            ++envelopes.channels[envelope->channels];
            envelopes.points_needed =
                std::max(envelopes.points_needed,
                         std::int64_t{envelope->first_point} + envelope->num_points);
        }
    }
    const auto range = map.datafile().find_type(kItemEnvelopePoints);
    for (std::size_t i = 0; range && i < range->num; ++i) {
        envelopes.points_ints.push_back(map.datafile().item(range->start + i).ints.size());
    }
    return envelopes;
}

LayersDescription describe_layers(const Map& map) {
    LayersDescription layers;
    layers.groups = map.group_count();
    layers.layers = map.layer_count();
    for (std::size_t i = 0; i < layers.groups; ++i) {
        if (const auto group = map.group(i)) {
            layers.group_versions.insert(group->version);
        }
    }
    for (std::size_t i = 0; i < layers.layers; ++i) {
        const auto layer = map.layer(i);
        if (!layer) {
            continue;
        }
        ++layers.types[layer->type];
        if (const auto* const tiles = std::get_if<TileLayer>(&layer->content)) {
            ++layers.tilemap_forms[{tiles->version, layer->item_ints}];
            if (const auto kind = physics_layer_of(tiles->flags)) {
                ++layers.physics[*kind];
            }
        }
    }
    return layers;
}

Histogram count_ids(std::span<const std::byte> records, std::size_t size, std::size_t id_at) {
    std::array<std::size_t, 256> counts{};
    for (std::size_t at = id_at; at < records.size(); at += size) {
        ++counts.at(std::to_integer<std::size_t>(records[at]));
    }
    Histogram met;
    for (std::size_t id = 0; id < counts.size(); ++id) {
        if (counts.at(id) > 0) {
            met[static_cast<std::uint8_t>(id)] = counts.at(id);
        }
    }
    return met;
}

std::uint64_t declared_bytes(const Map& map, std::int32_t block) {
    const bool there = block >= 0 && static_cast<std::size_t>(block) < map.datafile().block_count();
    return there ? map.datafile().block_info(static_cast<std::size_t>(block)).size : 0;
}

/// Returns the number of tiles of a layer. Precondition: width and height are positive, as in every
/// layer that was loaded.
std::size_t tile_count(const TileLayer& layer) {
    return static_cast<std::size_t>(layer.width) * static_cast<std::size_t>(layer.height);
}

GameTiles describe_game_tiles(std::span<const std::byte> tiles) {
    std::vector<std::byte> ids;
    std::vector<std::byte> flags;
    ids.reserve(tiles.size() / 4);
    flags.reserve(tiles.size() / 4);
    GameTiles described;
    for (std::size_t at = 0; at + 4 <= tiles.size(); at += 4) {
        ids.push_back(tiles[at]);
        flags.push_back(tiles[at + 1]);
        described.skips += (tiles[at + 2] | tiles[at + 3]) != std::byte{0} ? 1U : 0U;
        described.entities += std::to_integer<unsigned>(tiles[at]) >= kFirstEntity ? 1U : 0U;
    }
    described.histogram = count_ids(ids, 1, 0);
    described.ids = sha256_of(ids);
    described.flags = sha256_of(flags);
    return described;
}

std::optional<GameLayerDescription> describe_game_layer(const Map& map) {
    const auto place = map.physics_layer(Layer::game);
    if (!place) {
        return std::nullopt;
    }
    auto layer = std::get<TileLayer>(map.layer(place->layer)->content);
    const std::uint64_t bytes = declared_bytes(map, layer.data);
    auto tiles = read_tiles(map, layer).map([&layer](const Block& block) {
        return describe_game_tiles(block.bytes().first(tile_count(layer) * 4));
    });
    const auto packed = is_packed(layer) ? std::optional{bytes / 4} : std::nullopt;
    return GameLayerDescription{.place = *place,
                                .layer = std::move(layer),
                                .data_bytes = bytes,
                                .packed_tiles = packed,
                                .tiles = std::move(tiles)};
}

Result<DdnetTiles> describe_ddnet_tiles(const Map& map, const TileLayer& described, Layer kind,
                                        std::int32_t block) {
    constexpr std::array<std::size_t, kPhysicsLayers> kIdAt = {0, 0, 1, 2, 1, 1};
    const TileLayer layer = with_plain_records(described);
    if (is_packed(layer)) {
        return tl::unexpected{MapError{.code = MapErrc::unknown_tile_record}};
    }
    const std::size_t size = record_size(kind);
    return load_tiles(map.datafile(), layer, block, size).map([&](const Block& records) {
        const auto bytes = records.bytes().first(tile_count(layer) * size);
        return DdnetTiles{.histogram =
                              count_ids(bytes, size, kIdAt.at(static_cast<std::size_t>(kind))),
                          .sha256 = sha256_of(bytes)};
    });
}

std::vector<DdnetLayerDescription> describe_ddnet_layers(const Map& map) {
    std::vector<DdnetLayerDescription> layers;
    for (const Layer kind :
         {Layer::front, Layer::tele, Layer::speedup, Layer::switch_, Layer::tune}) {
        const auto place = map.physics_layer(kind);
        if (!place) {
            continue;
        }
        const auto item = map.layer(place->layer);
        const auto& layer = std::get<TileLayer>(item->content);
        const std::int32_t own = own_data(layer, kind).value_or(-1);
        layers.push_back({.kind = kind,
                          .place = *place,
                          .layer = layer,
                          .item_ints = item->item_ints,
                          .own_data = own,
                          .data_bytes = declared_bytes(map, own),
                          .tiles = describe_ddnet_tiles(map, layer, kind, own)});
    }
    return layers;
}

PlacesDescription describe_places(const PhysicsLayers& physics, const DescribeOptions& options) {
    PlacesDescription places;
    for (const PointToDescribe& point : options.points) {
        const Location at = physics.locate(point.x, point.y);
        places.points.push_back(
            {.point = point,
             .at = at,
             .front = physics.has(Layer::front) ? std::optional{at.front} : std::nullopt,
             .effect_tile = physics.effect_tile_at(point.x, point.y)});
    }
    for (const WorldPos centre : options.boxes) {
        places.boxes.push_back(
            {.centre = centre,
             .in_solid = physics.tee_in_solid(centre),
             .on_ground = physics.tee_on_ground(centre),
             .touches_game_death = physics.tee_touches_death(centre, Layer::game),
             .touches_front_death = physics.tee_touches_death(centre, Layer::front)});
    }
    return places;
}

} // namespace

Description describe(const Map& map, const DescribeOptions& options) {
    Description description;
    description.identity = identify(map.datafile().bytes());
    description.container = describe_container(map.datafile());
    description.content = ContentDescription{.info = read_info(map),
                                             .images = describe_images(map),
                                             .sounds = sound_count(map),
                                             .envelopes = describe_envelopes(map),
                                             .layers = describe_layers(map),
                                             .game_layer = describe_game_layer(map),
                                             .ddnet_layers = describe_ddnet_layers(map)};
    description.warnings = map.warnings();
    const auto physics = map.physics(&description.warnings);
    description.acceptance = judge(description.warnings, physics);
    if (physics) {
        description.places = describe_places(*physics, options);
    }
    return description;
}

Description describe_rejected(std::vector<std::byte> bytes, const MapError& error) {
    Description description;
    description.identity = identify(bytes);
    description.acceptance = judge(error);
    if (const auto file = Datafile::parse(std::move(bytes))) {
        description.container = describe_container(*file);
        description.warnings = file->warnings();
    }
    return description;
}

} // namespace tw::map
