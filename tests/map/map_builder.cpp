#include "tests/map/map_builder.h"

#include "map/map.h"

#include <algorithm>

namespace tw::map::test {

MapBuilder& MapBuilder::set_record(Layer kind, int x, int y, std::span<const std::uint8_t> record) {
    Plane& target = find_or_add_plane(kind);
    const auto at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(target.width) +
                     static_cast<std::size_t>(x)) *
                    tile_bytes(kind);
    for (std::size_t i = 0; i < record.size(); ++i) {
        target.records.at(at + i) = std::byte{record[i]};
    }
    return *this;
}

MapBuilder& MapBuilder::set_game(int x, int y, std::uint8_t index, std::uint8_t flags) {
    const std::uint8_t record[] = {index, flags};
    return set_record(Layer::game, x, y, record);
}

MapBuilder& MapBuilder::add_layer(Layer kind, int width, int height) {
    const auto tiles = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
    planes_.push_back({kind, width, height, std::vector<std::byte>(tiles * tile_bytes(kind))});
    return *this;
}

MapBuilder& MapBuilder::set_tilemap_version(int version) {
    tilemap_version_ = version;
    return *this;
}

MapBuilder& MapBuilder::set_settings(std::string_view nul_terminated_lines) {
    settings_ = nul_terminated_lines;
    return *this;
}

MapBuilder::Plane& MapBuilder::find_or_add_plane(Layer kind) {
    const auto of_kind = [kind](const Plane& plane) { return plane.kind == kind; };
    if (std::ranges::none_of(planes_, of_kind)) {
        add_layer(kind, width_, height_);
    }
    return *std::ranges::find_if(planes_, of_kind);
}

std::vector<std::int32_t> MapBuilder::layer_ints(DatafileWriter& writer, const Plane& plane) const {
    constexpr std::int32_t kFlags[] = {kLayerFlagGame,    kLayerFlagFront,  kLayerFlagTele,
                                       kLayerFlagSpeedup, kLayerFlagSwitch, kLayerFlagTune};
    const std::int32_t own = writer.add_block(plane.records);
    std::int32_t data = own;
    if (plane.kind != Layer::game) {
        const auto tiles =
            static_cast<std::size_t>(plane.width) * static_cast<std::size_t>(plane.height);
        data = writer.add_block(std::vector<std::byte>(tiles * 4));
    }
    std::vector<std::int32_t> ints = {0,
                                      kLayerTypeTiles,
                                      0,
                                      tilemap_version_,
                                      plane.width,
                                      plane.height,
                                      kFlags[static_cast<std::size_t>(plane.kind)],
                                      255,
                                      255,
                                      255,
                                      255,
                                      -1,
                                      0,
                                      -1,
                                      data};
    if (tilemap_version_ >= 3) {
        ints.resize(18);
        encode_int_text(layer_name(plane.kind), std::span{ints}.subspan(15, 3));
    }
    for (const Layer kind :
         {Layer::tele, Layer::speedup, Layer::front, Layer::switch_, Layer::tune}) {
        ints.push_back(plane.kind == kind ? own : -1);
    }
    return ints;
}

DatafileWriter MapBuilder::writer(int datafile_version) const {
    DatafileWriter writer{datafile_version};
    const std::int32_t version[] = {1};
    writer.add_item(kItemTypeVersion, 0, version);
    if (!settings_.empty()) {
        const std::int32_t block = writer.add_block(std::as_bytes(std::span{settings_}));
        const std::int32_t info[] = {1, -1, -1, -1, -1, block};
        writer.add_item(kItemTypeInfo, 0, info);
    }
    const std::int32_t group[] = {
        3, 0, 0, 100, 100, 0, static_cast<std::int32_t>(planes_.size()), 0, 0, 0, 0, 0, 0, 0, 0};
    writer.add_item(kItemTypeGroup, 0, group);
    for (std::size_t i = 0; i < planes_.size(); ++i) {
        writer.add_item(kItemTypeLayer, static_cast<std::uint16_t>(i),
                        layer_ints(writer, planes_[i]));
    }
    return writer;
}

std::vector<std::byte> MapBuilder::build(int datafile_version) const {
    return writer(datafile_version).finish();
}

std::vector<std::int32_t> tile_layer(int version, int width, int height, int flags, int data) {
    std::vector<std::int32_t> ints{0,   2,   0,   version, width, height, flags, 255,
                                   255, 255, 255, -1,      0,     -1,     data};
    if (version >= 3) {
        ints.insert(ints.end(), 3,
                    static_cast<std::int32_t>(0x80808080U)); // the ints of an empty name
    }
    return ints;
}

std::vector<std::byte> map_with_layers(const std::vector<std::vector<std::int32_t>>& layers,
                                       const std::vector<std::byte>& block, int blocks) {
    DatafileWriter writer;
    const std::int32_t version[] = {1};
    writer.add_item(kItemTypeVersion, 0, version);
    const std::int32_t group[] = {1, 0, 0, 100, 100, 0, static_cast<std::int32_t>(layers.size())};
    writer.add_item(kItemTypeGroup, 0, group);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        writer.add_item(kItemTypeLayer, static_cast<std::uint16_t>(i), layers[i]);
    }
    for (int i = 0; i < blocks; ++i) {
        writer.add_block(block);
    }
    return writer.finish();
}

} // namespace tw::map::test
