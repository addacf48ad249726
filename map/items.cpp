#include "map/items.h"

#include "map/text.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tw::map {
namespace {

constexpr std::size_t kPointInts = 6;
constexpr std::size_t kTangentInts = 16;
constexpr std::int32_t kBezierEnvelopeVersion = 3;
constexpr std::size_t kQuadInts = 38;
constexpr std::size_t kSourceInts = 13;
constexpr std::size_t kOldSourceInts = 9;
constexpr std::size_t kPixelBytes = 4;

using Ints = std::span<const std::int32_t>;

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

/// Reads `count` records of `ints_each` ints from a block, and decodes each with `decode`. A block
/// with fewer ints is an error.
template <typename Record, typename Decode>
Result<std::vector<Record>> read_records(const Map& map, std::int32_t block, std::int32_t count,
                                         std::size_t ints_each, const Decode& decode) {
    const auto fail = [block](MapErrc code) {
        return tl::unexpected{MapError{.code = code, .block = static_cast<std::uint32_t>(block)}};
    };
    std::vector<Record> records;
    if (count == 0) {
        return records; // in real files, this block can be empty
    }
    if (block < 0 || static_cast<std::size_t>(block) >= map.datafile().block_count()) {
        return fail(MapErrc::block_index_out_of_range);
    }
    const std::uint64_t size = map.datafile().block_info(static_cast<std::size_t>(block)).size;
    if (count < 0 || static_cast<std::uint64_t>(count) > size / (ints_each * 4)) {
        return fail(MapErrc::wrong_record_size);
    }
    const auto bytes = map.datafile().block(block);
    if (!bytes) {
        return tl::unexpected{bytes.error()};
    }
    records.reserve(static_cast<std::size_t>(count));
    std::vector<std::int32_t> ints(ints_each);
    std::size_t at = 0;
    while (records.size() < static_cast<std::size_t>(count)) {
        for (std::int32_t& value : ints) {
            value = read_i32(bytes->bytes(), at);
            at += sizeof(value);
        }
        records.push_back(decode(ints));
    }
    return records;
}

Curve curve_of(std::int32_t value) {
    return value >= 0 && value <= static_cast<std::int32_t>(Curve::bezier)
               ? static_cast<Curve>(value)
               : Curve::linear;
}

Tangents decode_tangents(Ints ints) {
    Tangents tangents;
    std::copy_n(ints.begin(), 4, tangents.in_dx.begin());
    std::copy_n(ints.begin() + 4, 4, tangents.in_dy.begin());
    std::copy_n(ints.begin() + 8, 4, tangents.out_dx.begin());
    std::copy_n(ints.begin() + 12, 4, tangents.out_dy.begin());
    return tangents;
}

bool has_bezier_envelope(const Map& map) {
    for (std::size_t i = 0; i < envelope_count(map); ++i) {
        const auto envelope = read_envelope(map, i);
        if (envelope && envelope->version >= kBezierEnvelopeVersion) {
            return true;
        }
    }
    return false;
}

Quad decode_quad(Ints ints) {
    Quad quad;
    const auto point = [&ints](std::size_t at) { return FixedPoint{ints[at], ints[at + 1]}; };
    for (std::size_t i = 0; i < 4; ++i) {
        quad.corners.at(i) = point(2 * i);
        const std::size_t color = 10 + 4 * i;
        quad.colors.at(i) = {ints[color], ints[color + 1], ints[color + 2], ints[color + 3]};
        quad.texture.at(i) = point(26 + 2 * i);
    }
    quad.pivot = point(8);
    quad.position_envelope = ints[34];
    quad.position_envelope_offset = ints[35];
    quad.color_envelope = ints[36];
    quad.color_envelope_offset = ints[37];
    return quad;
}

SoundSource decode_source(Ints ints, bool old_format) {
    std::size_t at = 0;
    const auto next = [&ints, &at] { return ints[at++]; };
    SoundSource source;
    source.position = {next(), next()};
    source.looping = next() != 0;
    source.panning = old_format || next() != 0;
    source.delay = next();
    source.falloff = old_format ? 0 : next();
    source.circle = old_format;
    source.width = old_format ? next() : 0;
    source.position_envelope = next();
    source.position_envelope_offset = next();
    source.sound_envelope = next();
    source.sound_envelope_offset = next();
    if (!old_format) {
        source.circle = next() == 1;
        source.width = next();
        source.height = next();
    }
    return source;
}

std::size_t count_of(const Map& map, std::uint16_t type) {
    const auto range = map.datafile().find_type(type);
    return range ? range->num : 0;
}

} // namespace

std::optional<Info> read_info(const Map& map) {
    const auto item = map.datafile().find_item_by_id(kItemInfo, 0);
    if (!item || item->ints.size() < 5) {
        return std::nullopt;
    }
    Info info;
    info.item_ints = item->ints.size();
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

std::size_t image_count(const Map& map) {
    return count_of(map, kItemImage);
}

std::optional<Image> read_image(const Map& map, std::size_t index) {
    const auto item = map.datafile().find_item(kItemImage, static_cast<std::int64_t>(index));
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
    const std::size_t pixel_bytes = image.format.value_or(1) == 0 ? 3 : kPixelBytes;
    if (block && block->size() / pixel_bytes / static_cast<std::size_t>(image.width) <
                     static_cast<std::size_t>(image.height)) {
        return tl::unexpected{MapError{.code = MapErrc::wrong_record_size,
                                       .block = static_cast<std::uint32_t>(image.data)}};
    }
    return block;
}

std::size_t sound_count(const Map& map) {
    return count_of(map, kItemSound);
}

std::optional<Sound> read_sound(const Map& map, std::size_t index) {
    const auto item = map.datafile().find_item(kItemSound, static_cast<std::int64_t>(index));
    if (!item || item->ints.size() < 5) {
        return std::nullopt;
    }
    Sound sound;
    sound.version = item->ints[0];
    sound.external = item->ints[1] != 0;
    sound.name = block_file_name(map, item->ints[2]);
    sound.data = item->ints[3];
    sound.data_size = item->ints[4];
    return sound;
}

std::size_t envelope_count(const Map& map) {
    return count_of(map, kItemEnvelope);
}

std::optional<Envelope> read_envelope(const Map& map, std::size_t index) {
    const auto item = map.datafile().find_item(kItemEnvelope, static_cast<std::int64_t>(index));
    if (!item || item->ints.size() < 4) {
        return std::nullopt;
    }
    Envelope envelope;
    envelope.item_ints = item->ints.size();
    envelope.version = item->ints[0];
    envelope.channels = item->ints[1];
    envelope.first_point = item->ints[2];
    envelope.num_points = item->ints[3];
    if (item->ints.size() >= 12) {
        envelope.name = decode_int_text(item->ints.subspan(4, 8));
        if (!is_utf8(*envelope.name)) {
            envelope.name->clear();
        }
    }
    envelope.synchronized = item->ints.size() >= 13 && item->ints[12] != 0;
    return envelope;
}

std::vector<EnvelopePoint> read_envelope_points(const Map& map) {
    const auto item = map.datafile().find_item(kItemEnvelopePoints, 0);
    if (!item) {
        return {};
    }
    const bool wide = has_bezier_envelope(map);
    const std::size_t each = wide ? kPointInts + kTangentInts : kPointInts;
    const std::size_t count = item->ints.size() / each;
    const auto extra = find_uuid_item(map.datafile(), kUuidBezierPoints);
    const bool apart = !wide && extra && extra->ints.size() == count * kTangentInts;
    std::vector<EnvelopePoint> points(count);
    for (std::size_t i = 0; i < count; ++i) {
        const Ints ints = item->ints.subspan(i * each, each);
        points[i].time = ints[0];
        points[i].curve = curve_of(ints[1]);
        std::copy_n(ints.begin() + 2, 4, points[i].values.begin());
        if (wide) {
            points[i].tangents = decode_tangents(ints.subspan(kPointInts));
        } else if (apart) {
            points[i].tangents =
                decode_tangents(extra->ints.subspan(i * kTangentInts, kTangentInts));
        }
    }
    return points;
}

Result<std::vector<Quad>> read_quads(const Map& map, const QuadLayer& layer) {
    return read_records<Quad>(map, layer.data, layer.num_quads, kQuadInts, decode_quad);
}

Result<std::vector<SoundSource>> read_sources(const Map& map, const SoundLayer& layer) {
    return read_records<SoundSource>(
        map, layer.data, layer.num_sources, layer.old_format ? kOldSourceInts : kSourceInts,
        [&layer](Ints ints) { return decode_source(ints, layer.old_format); });
}

Result<Block> read_tiles(const Map& map, const TileLayer& layer) {
    return load_tiles(map.datafile(), layer, layer.data, record_size(Layer::game));
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
    const auto range = file.find_type(kItemUuidIndex);
    for (std::size_t i = 0; range && i < range->num; ++i) {
        const ItemView item = file.item(range->start + i);
        if (item.ints.size() >= kUuidInts && !seen[item.id]) {
            seen[item.id] = true;
            types.push_back({item.id, decode_uuid(item.ints)});
        }
    }
    return types;
}

std::optional<std::uint16_t> find_uuid_type(const Datafile& file, const Uuid& uuid) {
    const auto types = uuid_types(file);
    const auto found =
        std::ranges::find_if(types, [&uuid](const UuidType& type) { return type.uuid == uuid; });
    return found == types.end() ? std::nullopt : std::optional{found->type};
}

std::optional<ItemView> find_uuid_item(const Datafile& file, const Uuid& uuid, std::int64_t index) {
    const auto type = find_uuid_type(file, uuid);
    return type ? file.find_item(*type, index) : std::nullopt;
}

namespace {

/// Calls `use` with the ints of each item of a UUID type that has at least `min_ints` ints.
template <typename Use>
void for_each_uuid_item(const Datafile& file, const Uuid& uuid, std::size_t min_ints,
                        const Use& use) {
    const auto type = find_uuid_type(file, uuid);
    const auto range = type ? file.find_type(*type) : std::nullopt;
    for (std::size_t i = 0; range && i < range->num; ++i) {
        if (const Ints ints = file.item(range->start + i).ints; ints.size() >= min_ints) {
            use(ints);
        }
    }
}

} // namespace

std::vector<Automapper> read_automappers(const Datafile& file) {
    std::vector<Automapper> found;
    for_each_uuid_item(file, kUuidAutomapper, 6, [&found](Ints ints) {
        found.push_back({ints[0], ints[1], ints[2], ints[3], ints[4], (ints[5] & 1) != 0});
    });
    return found;
}

std::vector<GroupExtra> read_group_extras(const Datafile& file) {
    std::vector<GroupExtra> found;
    for_each_uuid_item(file, kUuidGroup, 2, [&found](Ints ints) {
        found.push_back({ints[0], ints[1]});
    });
    return found;
}

} // namespace tw::map
