#include "map/layers.h"
#include "tests/map/map_builder.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

using Ints = std::vector<std::int32_t>;

/// The result of decoding a layer item.
enum class DecodedLayer : std::uint8_t { nothing, unknown, tiles, design };

DecodedLayer decode_layer_kind(const Ints& ints) {
    const auto layer = decode_layer(ints);
    if (!layer) {
        return DecodedLayer::nothing;
    }
    CHECK(layer->num_item_ints == ints.size());
    CHECK(layer->type == ints[1]);
    return static_cast<DecodedLayer>(layer->content.index() + 1);
}

} // namespace

TEST_CASE("a layer item of any length is read as far as possible") {
    struct Row {
        std::string_view name;
        Ints item;
        std::size_t needed; ///< a shorter item is an unknown layer
        DecodedLayer read;
    };

    const Row rows[] = {
        {"tiles", test::tile_layer(3, 4, 5, kLayerFlagTele, 6), 15, DecodedLayer::tiles},
        {"quads", {0, 3, 1, 2, 7, 8, 9, 0, 0, 0}, 7, DecodedLayer::design},
        {"sounds", {0, 10, 1, 2, 7, 8, 9, 0, 0, 0}, 7, DecodedLayer::design},
        {"old sounds", {0, 9, 1, 1, 7, 8, 9}, 7, DecodedLayer::design},
        {"a type no one knows", {0, 4, 1, 1, 7, 8, 9}, 7, DecodedLayer::unknown},
    };
    for (const auto& row : rows) {
        for (std::size_t size = 0; size <= row.item.size(); ++size) {
            CAPTURE(row.name);
            CAPTURE(size);
            const Ints cut{row.item.begin(), row.item.begin() + static_cast<std::ptrdiff_t>(size)};
            CHECK(decode_layer_kind(cut) == (size < 3            ? DecodedLayer::nothing
                                             : size < row.needed ? DecodedLayer::unknown
                                                                 : row.read));
        }
    }
}

TEST_CASE("a group item of any length is read as far as possible") {
    const Ints whole{3, 10, 20, 100, 90, 4, 5, 1};
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        CAPTURE(size);
        const auto group =
            decode_group(Ints{whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
        REQUIRE(group.has_value() == (size >= 7));
        if (!group) {
            continue;
        }
        CHECK(group->offset_y == 20);
        CHECK(group->num_layers == 5);
    }
}

TEST_CASE("the flags of a physics layer determine its kind and its data block") {
    struct Row {
        std::int32_t flag;
        Layer kind;
        std::size_t record;
    };

    TileLayer layer;
    layer.data = 0;
    layer.front = 1;
    layer.tele = 2;
    layer.speedup = 3;
    layer.switch_ = 4;
    layer.tune = 5;
    for (const Row row :
         {Row{kLayerFlagGame, Layer::game, 4}, Row{kLayerFlagFront, Layer::front, 4},
          Row{kLayerFlagTele, Layer::tele, 2}, Row{kLayerFlagSpeedup, Layer::speedup, 6},
          Row{kLayerFlagSwitch, Layer::switch_, 4}, Row{kLayerFlagTune, Layer::tune, 2}}) {
        CAPTURE(row.flag);
        CHECK(physics_layer_of(row.flag) == row.kind);
        CHECK(physics_layer_of(row.flag | 64) == row.kind);
        CHECK_FALSE(physics_layer_of(
            row.flag | (row.flag == kLayerFlagGame ? kLayerFlagTele : kLayerFlagGame)));
        CHECK(tile_bytes(row.kind) == row.record);
        CHECK(tile_block(layer, row.kind) == static_cast<std::int32_t>(row.kind));
        CHECK(tile_block(TileLayer{}, row.kind).has_value() == (row.kind == Layer::game));
    }
    CHECK_FALSE(physics_layer_of(0));
}

} // namespace tw::map
