#include "map/items.h"

#include "map/text.h"

#include <utility>

namespace tw::map {
namespace {

std::optional<std::string> block_text(const Map& map, std::int32_t index, std::size_t max_bytes) {
    const auto block = map.datafile().block(index);
    auto text = block ? decode_block_text(block->bytes()) : std::nullopt;
    return text ? std::optional{std::string{truncate_utf8(*text, max_bytes)}} : std::nullopt;
}

/// Reads a name that clients use as a file name. Returns nullopt if it is not a plain file name,
/// because it could point to another folder.
std::optional<std::string> block_file_name(const Map& map, std::int32_t index) {
    auto name = block_text(map, index, 127);
    return name && name->find_first_of("/\\") == std::string::npos ? name : std::nullopt;
}

/// Splits a block into its NUL-terminated lines. The last NUL may be missing.
std::vector<std::string> split_lines(std::span<const std::byte> block) {
    std::vector<std::string> lines;
    std::string line;
    for (const std::byte byte : block) {
        if (byte == std::byte{0}) {
            lines.push_back(std::exchange(line, {}));
        } else {
            line.push_back(static_cast<char>(byte));
        }
    }
    if (!line.empty()) {
        lines.push_back(std::move(line));
    }
    return lines;
}

} // namespace

std::optional<MapInfo> read_info(const Map& map) {
    const auto item = map.datafile().find_item_by_id(kItemTypeInfo, 0);
    if (!item || item->ints.size() < 5) {
        return std::nullopt;
    }
    MapInfo info;
    info.num_item_ints = item->ints.size();
    info.version = item->ints[0];
    info.author = block_text(map, item->ints[1], 31);
    info.map_version = block_text(map, item->ints[2], 15);
    info.credits = block_text(map, item->ints[3], 127);
    info.license = block_text(map, item->ints[4], 31);
    if (item->ints.size() >= 6) {
        if (const auto block = map.datafile().block(item->ints[5])) {
            info.settings = split_lines(block->bytes());
        }
    }
    return info;
}

std::optional<Image> read_image(const Map& map, std::size_t index) {
    const auto item = map.datafile().find_item(kItemTypeImage, static_cast<std::int64_t>(index));
    if (!item || item->ints.size() < 6) {
        return std::nullopt;
    }
    Image image;
    image.version = item->ints[0];
    image.width = item->ints[1];
    image.height = item->ints[2];
    image.external = item->ints[3] != 0;
    image.name = block_file_name(map, item->ints[4]);
    image.data = item->ints[5];
    if (image.version >= 2 && item->ints.size() >= 7) {
        image.format = item->ints[6];
    }
    return image;
}

Result<Block> read_pixels(const Map& map, const Image& image) {
    if (image.width < 1 || image.height < 1) {
        return tl::unexpected{MapError{.code = MapErrc::layer_bad_dimensions}};
    }
    auto block = map.datafile().block(image.data);
    const std::size_t pixel_bytes = image.format.value_or(1) == 0 ? 3 : 4;
    if (block && block->size() / pixel_bytes / static_cast<std::size_t>(image.width) <
                     static_cast<std::size_t>(image.height)) {
        return tl::unexpected{MapError{.code = MapErrc::wrong_record_size,
                                       .block = static_cast<std::uint32_t>(image.data)}};
    }
    return block;
}

std::optional<Envelope> read_envelope(const Map& map, std::size_t index) {
    const auto item = map.datafile().find_item(kItemTypeEnvelope, static_cast<std::int64_t>(index));
    if (!item || item->ints.size() < 4) {
        return std::nullopt;
    }
    Envelope envelope;
    envelope.num_item_ints = item->ints.size();
    envelope.version = item->ints[0];
    envelope.channels = item->ints[1];
    envelope.first_point = item->ints[2];
    envelope.num_points = item->ints[3];
    return envelope;
}

Result<Block> read_tiles(const Map& map, const TileLayer& layer) {
    return load_tiles(map.datafile(), layer, layer.data, tile_bytes(Layer::game));
}

namespace {

constexpr std::size_t kUuidInts = 4;

Uuid decode_uuid(std::span<const std::int32_t> ints) {
    Uuid uuid{};
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        const auto value = static_cast<std::uint32_t>(ints[i / 4]);
        uuid.at(i) = static_cast<std::uint8_t>(value >> (24U - 8U * (i % 4)));
    }
    return uuid;
}

} // namespace

std::string to_text(const Uuid& uuid) {
    std::string text = hex_digits(uuid);
    for (const std::size_t at : {8U, 13U, 18U, 23U}) {
        text.insert(at, 1, '-');
    }
    return text;
}

std::vector<UuidType> uuid_types(const Datafile& file) {
    std::vector<UuidType> types;
    std::vector<bool> seen(std::size_t{0xffff} + 1);
    const auto range = file.find_type(kItemTypeUuidIndex);
    for (std::size_t i = 0; range && i < range->num; ++i) {
        const ItemView item = file.item(range->start + i);
        if (item.ints.size() >= kUuidInts && !seen[item.id]) {
            seen[item.id] = true;
            types.push_back({item.id, decode_uuid(item.ints)});
        }
    }
    return types;
}

} // namespace tw::map
