#include "map/describe.h"

#include "map/acceptance.h"
#include "map/identity.h"
#include "map/items.h"
#include "map/json_text.h"
#include "map/tile_data.h"
#include "map/uuid_items.h"

#include <array>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tw::map {
namespace {

using Out = fmt::memory_buffer;

template <typename... Args>
void print(Out& out, fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

std::string quote(const std::optional<std::string>& text) {
    return text ? json_quote(*text) : "null";
}

template <typename Range>
std::string join(const Range& range) {
    return fmt::format("[{}]", fmt::join(range, ", "));
}

/// {"key": value, ...} out of pairs whose keys need no escaping.
template <typename Pairs>
std::string object_of(const Pairs& pairs) {
    std::string text = "{";
    for (const auto& [key, value] : pairs) {
        text += fmt::format("{}\"{}\": {}", text.size() > 1 ? ", " : "", key, value);
    }
    return text + "}";
}

std::string_view field_name(SizeField field) {
    constexpr std::array<std::string_view, 3> kNames = {"full", "short", "wrong"};
    return kNames.at(static_cast<std::size_t>(field));
}

void describe_container(Out& out, const Datafile& file) {
    const DatafileHeader& header = file.header();
    print(out,
          R"(, "datafile": {{"magic": "{}", "version": {}, "num_item_types": {}, "num_items": {}, )"
          R"("num_data": {}, "item_size": {}, "data_size": {}, "size_field": "{}", )"
          R"("swaplen_field": "{}", "trailing_bytes": {}}}, "item_types": [)",
          header.reversed_magic ? "ATAD" : "DATA", header.version, header.num_item_types,
          header.num_items, header.num_data, header.item_size, header.data_size,
          field_name(file.size_field()), field_name(file.swaplen_field()), file.trailing_bytes());
    std::string_view comma;
    for (const ItemType& type : file.item_types()) {
        print(out, "{}[{}, {}, {}]", comma, type.type, type.start, type.num);
        comma = ", ";
    }
    std::vector<std::size_t> unreadable;
    for (std::size_t i = 0; i < file.block_count(); ++i) {
        const auto block = file.block(static_cast<std::int64_t>(i));
        if (!block && block.error().code != MapErrc::block_empty) {
            unreadable.push_back(i);
        }
    }
    std::vector<std::pair<std::uint16_t, std::string>> uuids;
    for (const UuidType& type : uuid_types(file)) {
        uuids.emplace_back(type.type, json_quote(to_text(type.uuid)));
    }
    print(out, R"(], "unreadable_data": {}, "uuid_item_types": {})", join(unreadable),
          object_of(uuids));
}

void describe_info(Out& out, const Map& map) {
    const auto info = read_info(map);
    if (!info) {
        print(out, R"(, "info": null)");
        return;
    }
    print(out,
          R"(, "info": {{"ints": {}, "version": {}, "author": {}, "map_version": {}, )"
          R"("credits": {}, "license": {})",
          info->item_ints, info->version, quote(info->author), quote(info->map_version),
          quote(info->credits), quote(info->license));
    if (info->settings) {
        print(out, R"(, "settings_lines": {})", info->settings->size());
    }
    print(out, "}}");
}

void describe_images(Out& out, const Map& map) {
    std::size_t external = 0;
    std::set<std::int32_t> versions;
    for (std::size_t i = 0; i < image_count(map); ++i) {
        if (const auto image = read_image(map, i)) {
            external += image->external ? 1U : 0U;
            versions.insert(image->version);
        }
    }
    print(out, R"(, "images": {{"total": {}, "external": {}, "versions": {}}}, "sounds": {})",
          image_count(map), external, join(versions), sound_count(map));
}

void describe_envelopes(Out& out, const Map& map) {
    std::set<std::int32_t> versions;
    std::set<std::size_t> sizes;
    std::map<std::int32_t, std::size_t> channels;
    std::int64_t needed = 0;
    for (std::size_t i = 0; i < envelope_count(map); ++i) {
        if (const auto envelope = read_envelope(map, i)) {
            versions.insert(envelope->version);
            sizes.insert(envelope->item_ints);
            ++channels[envelope->channels];
            needed = std::max(needed, std::int64_t{envelope->first_point} + envelope->num_points);
        }
    }
    std::vector<std::size_t> points;
    const auto range = map.datafile().find_type(kItemEnvelopePoints);
    for (std::size_t i = 0; range && i < range->num; ++i) {
        points.push_back(map.datafile().item(range->start + i).ints.size());
    }
    print(out,
          R"(, "envelopes": {{"total": {}, "versions": {}, "ints": {}, "channels": {}, )"
          R"("points_ints": {}, "points_needed": {}}})",
          envelope_count(map), join(versions), join(sizes), object_of(channels), join(points),
          needed);
}

void describe_layers(Out& out, const Map& map) {
    std::set<std::int32_t> group_versions;
    for (std::size_t i = 0; i < map.group_count(); ++i) {
        if (const auto group = map.group(i)) {
            group_versions.insert(group->version);
        }
    }
    std::map<std::int32_t, std::size_t> types;
    std::map<std::pair<std::int32_t, std::size_t>, std::size_t> forms;
    std::map<std::string_view, std::size_t> kinds;
    for (std::size_t i = 0; i < map.layer_count(); ++i) {
        const auto layer = map.layer(i);
        if (!layer) {
            continue;
        }
        ++types[layer->type];
        if (const auto* const tiles = std::get_if<TileLayer>(&layer->content)) {
            ++forms[{tiles->version, layer->item_ints}];
            if (const auto kind = physics_layer_of(tiles->flags)) {
                ++kinds[layer_name(*kind)];
            }
        }
    }
    print(out,
          R"(, "groups": {}, "group_versions": {}, "layers": {}, "layer_types": {}, )"
          R"("tilemap_item_forms": [)",
          map.group_count(), join(group_versions), map.layer_count(), object_of(types));
    std::string_view comma;
    for (const auto& [form, count] : forms) {
        print(out, "{}[{}, {}, {}]", comma, form.first, form.second, count);
        comma = ", ";
    }
    print(out, R"(], "physics_layer_counts": {})", object_of(kinds));
}

/// How often each id occurs, as pairs of those that do.
std::map<unsigned, std::size_t> count_ids(std::span<const std::byte> records, std::size_t size,
                                          std::size_t id_at) {
    std::array<std::size_t, 256> counts{};
    for (std::size_t at = id_at; at < records.size(); at += size) {
        ++counts.at(std::to_integer<std::size_t>(records[at]));
    }
    std::map<unsigned, std::size_t> met;
    for (unsigned id = 0; id < counts.size(); ++id) {
        if (counts.at(id) > 0) {
            met[id] = counts.at(id);
        }
    }
    return met;
}

std::uint64_t declared_bytes(const Map& map, std::int32_t block) {
    const bool there = block >= 0 && static_cast<std::size_t>(block) < map.datafile().block_count();
    return there ? map.datafile().block_info(static_cast<std::size_t>(block)).size : 0;
}

void describe_place(Out& out, LayerPlace place, const TileLayer& layer) {
    print(out, R"({{"group": {}, "layer": {}, "width": {}, "height": {}, "tilemap_version": {})",
          place.group, place.layer, layer.width, layer.height, layer.version);
}

void describe_game_tiles(Out& out, std::span<const std::byte> tiles) {
    std::vector<std::byte> ids;
    std::vector<std::byte> flags;
    std::size_t skips = 0;
    std::size_t entities = 0;
    for (std::size_t at = 0; at + 4 <= tiles.size(); at += 4) {
        ids.push_back(tiles[at]);
        flags.push_back(tiles[at + 1]);
        skips += (tiles[at + 2] | tiles[at + 3]) != std::byte{0} ? 1U : 0U;
        entities += std::to_integer<unsigned>(tiles[at]) >= kFirstEntity ? 1U : 0U;
    }
    print(out,
          R"(, "index_sha256": "{}", "flags_sha256": "{}", "histogram": {}, )"
          R"("nonzero_skip_or_pad": {}, "entities": {})",
          to_hex(sha256_of(ids)), to_hex(sha256_of(flags)), object_of(count_ids(ids, 1, 0)), skips,
          entities);
}

void describe_game_layer(Out& out, const Map& map) {
    const auto place = map.physics_layer(Layer::game);
    if (!place) {
        print(out, R"(, "game_layer": null)");
        return;
    }
    const auto item = map.layer(place->layer);
    const auto& layer = std::get<TileLayer>(item->content);
    print(out, R"(, "game_layer": )");
    describe_place(out, *place, layer);
    const std::uint64_t bytes = declared_bytes(map, layer.data);
    print(out, R"(, "name": {})", quote(layer.name));
    if (layer.version >= 4) {
        print(out, R"(, "packed_tiles": {})", bytes / 4);
    }
    print(out, R"(, "data_bytes": {})", bytes);
    if (const auto tiles = read_tiles(map, layer)) {
        const auto count =
            static_cast<std::size_t>(layer.width) * static_cast<std::size_t>(layer.height);
        describe_game_tiles(out, tiles->bytes().first(count * 4));
    } else {
        print(out, R"(, "problem": "{}")", error_info(tiles.error().code).name);
    }
    print(out, "}}");
}

void describe_ddnet_layer(Out& out, const Map& map, Layer kind) {
    constexpr std::array<std::size_t, kPhysicsLayers> kIdAt = {0, 0, 1, 2, 1, 1};
    const auto place = map.physics_layer(kind);
    const auto item = map.layer(place->layer);
    const auto& layer = std::get<TileLayer>(item->content);
    const std::int32_t own = own_data(layer, kind).value_or(-1);
    print(out, R"("{}": )", layer_name(kind));
    describe_place(out, *place, layer);
    print(out,
          R"(, "item_ints": {}, "name": {}, "data_bytes": {}, "own_data_index": {}, )"
          R"("compat_data_index": {})",
          item->item_ints, quote(layer.name), declared_bytes(map, own), own, layer.data);
    const auto records =
        layer.version >= 4
            ? Result<Block>{tl::unexpected{MapError{.code = MapErrc::unknown_tile_record}}}
            : load_tiles(map.datafile(), layer, own, record_size(kind));
    if (records) {
        const auto count =
            static_cast<std::size_t>(layer.width) * static_cast<std::size_t>(layer.height);
        const auto bytes = records->bytes().first(count * record_size(kind));
        print(out, R"(, "histogram": {}, "sha256": "{}")",
              object_of(
                  count_ids(bytes, record_size(kind), kIdAt.at(static_cast<std::size_t>(kind)))),
              to_hex(sha256_of(bytes)));
    } else {
        print(out, R"(, "problem": "{}")", error_info(records.error().code).name);
    }
    print(out, "}}");
}

void describe_ddnet_layers(Out& out, const Map& map) {
    std::string_view before = R"(, "ddnet_layers": {)";
    for (const Layer kind :
         {Layer::front, Layer::tele, Layer::speedup, Layer::switch_, Layer::tune}) {
        if (map.physics_layer(kind)) {
            print(out, "{}", before);
            describe_ddnet_layer(out, map, kind);
            before = ", ";
        }
    }
    print(out, "{}", before == ", " ? "}" : R"(, "ddnet_layers": {})");
}

void describe_acceptance(Out& out, const Acceptance& acceptance, const Warnings& warnings) {
    print(out, R"(, "verdict": {{"strict": "{}", "lenient": "{}"}}, "oddities": [)",
          acceptance.strict, acceptance.lenient);
    std::string_view comma;
    for (const Warning& warning : warnings.list()) {
        print(out, R"({}{{"id": "{}", "where": {}, "count": {}}})", comma,
              warning_info(warning.id).name, warning.where, warning.count);
        comma = ", ";
    }
    print(out, "]");
}

void describe_points(Out& out, const Physics& physics, std::span<const PointToDescribe> points) {
    std::string_view comma;
    print(out, R"(, "points": [)");
    for (const auto& [x, y] : points) {
        const Location found = physics.locate(x, y);
        const TilePos effect = physics.effect_tile_at(x, y);
        print(out, "{}[{}, {}, {}, {}, {}, {}, {}, {}, {}, {}]", comma, json_number(x),
              json_number(y), found.tile.x, found.tile.y, found.game, collision_index(found.game),
              is_wall(found.game) ? 1 : 0, physics.has(Layer::front) ? int{found.front} : -1,
              effect.x, effect.y);
        comma = ", ";
    }
    print(out, "]");
}

void describe_boxes(Out& out, const Physics& physics, std::span<const WorldPos> boxes) {
    std::string_view comma;
    print(out, R"(, "boxes": [)");
    for (const WorldPos centre : boxes) {
        print(out, "{}[{}, {}, {:d}, {:d}, {:d}, {:d}]", comma, centre.x, centre.y,
              physics.tee_in_solid(centre), physics.tee_on_ground(centre),
              physics.tee_touches_death(centre, Layer::game),
              physics.tee_touches_death(centre, Layer::front));
        comma = ", ";
    }
    print(out, "]");
}

void describe_file(Out& out, std::span<const std::byte> bytes, const DescribeOptions& options) {
    const Identity identity = identify(bytes);
    print(out, R"({{"file": {})", json_quote(options.file));
    if (options.set) {
        print(out, R"(, "set": {})", json_quote(*options.set));
    }
    print(out, R"(, "size": {}, "crc32": "{}", "sha256": "{}")", identity.size,
          to_hex(identity.crc), to_hex(identity.sha256));
}

} // namespace

std::string describe_json(const Map& map, const DescribeOptions& options) {
    Out out;
    describe_file(out, map.datafile().bytes(), options);
    describe_container(out, map.datafile());
    describe_info(out, map);
    describe_images(out, map);
    describe_envelopes(out, map);
    describe_layers(out, map);
    describe_game_layer(out, map);
    describe_ddnet_layers(out, map);
    Warnings warnings = map.warnings();
    const auto physics = map.physics(&warnings);
    describe_acceptance(out, judge(warnings, physics), warnings);
    if (physics) {
        describe_points(out, *physics, options.points);
        describe_boxes(out, *physics, options.boxes);
    }
    print(out, "}}");
    return fmt::to_string(out);
}

std::string describe_rejected_json(std::vector<std::byte> bytes, const MapError& error,
                                   const DescribeOptions& options) {
    Out out;
    describe_file(out, bytes, options);
    Warnings warnings;
    if (const auto file = Datafile::parse(std::move(bytes))) {
        describe_container(out, *file);
        warnings = file->warnings();
    }
    describe_acceptance(out, judge(error), warnings);
    print(out, "}}");
    return fmt::to_string(out);
}

} // namespace tw::map
