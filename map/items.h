#pragma once

#include "map/datafile.h"
#include "map/layers.h"
#include "map/map.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tw::map {

/// The map's author and other texts, and its console commands.
struct Info {
    std::size_t item_ints = 0;
    std::int32_t version = 0;
    std::optional<std::string> author;      ///< at most 31 bytes
    std::optional<std::string> map_version; ///< at most 15 bytes
    std::optional<std::string> credits;     ///< at most 127 bytes
    std::optional<std::string> license;     ///< at most 31 bytes
    /// Console commands in the file's order, not necessarily UTF-8; nullopt if the map has none.
    std::optional<std::vector<std::string>> settings;
};

/// Reads the info item. Returns nullopt if the map has no info item, like a quarter of real maps. A
/// text is nullopt if it is not UTF-8 or not a single NUL-terminated string. A text that is too
/// long is cut.
[[nodiscard]] std::optional<Info> read_info(const Map& map);

struct Image {
    std::int32_t version = 0;
    std::int32_t width = 0, height = 0;
    bool external = false;           ///< the image is a file in the client's mapres folder
    std::optional<std::string> name; ///< nullopt if the name is unreadable or unsafe as a file name
    std::int32_t data = -1;
    std::optional<std::int32_t> format; ///< in version 2: 1 is RGBA, 0 is RGB
};

[[nodiscard]] std::size_t image_count(const Map& map);
[[nodiscard]] std::optional<Image> read_image(const Map& map, std::size_t index);
/// Reads the pixels of an embedded image, rows from the top: RGBA with 4 bytes per pixel, or RGB
/// with 3 bytes if Image::format is 0.
///
/// Errors:  wrong_record_size; layer_bad_dimensions if a side is below 1; those of Datafile::block.
[[nodiscard]] Result<Block> read_pixels(const Map& map, const Image& image);

struct Sound {
    std::int32_t version = 0;
    bool external = false;
    std::optional<std::string> name;
    std::int32_t data = -1;
    std::int32_t data_size = 0; ///< size of the Opus data in bytes
};

[[nodiscard]] std::size_t sound_count(const Map& map);
[[nodiscard]] std::optional<Sound> read_sound(const Map& map, std::size_t index);

/// The interpolation from one envelope point to the next. Unknown values in a file are read as
/// linear.
enum class Curve : std::uint8_t { step, linear, slow, fast, smooth, bezier };

/// An envelope: values that change over time, for example the movement of a quad.
struct Envelope {
    std::size_t item_ints = 0;
    std::int32_t version = 0;
    std::int32_t channels = 0; ///< number of values per point: 1 sound, 3 position, 4 colour
    std::int32_t first_point = 0;
    std::int32_t num_points = 0;
    std::optional<std::string> name; ///< nullopt in the oldest layout, which has 5 ints
    bool synchronized = false;       ///< the envelope runs in the server's time
};

[[nodiscard]] std::size_t envelope_count(const Map& map);
[[nodiscard]] std::optional<Envelope> read_envelope(const Map& map, std::size_t index);

/// Tangents of a bezier point, one per channel. Units: dx in ms, dy in 22.10 fixed point.
struct Tangents {
    std::array<std::int32_t, 4> in_dx{}, in_dy{}, out_dx{}, out_dy{};

    friend bool operator==(const Tangents&, const Tangents&) = default;
};

/// Units:   time in ms; values in 22.10 fixed point. Colours and volumes: 1 is full. Positions are
///          in pixels, rotations in degrees.
struct EnvelopePoint {
    std::int32_t time = 0;
    Curve curve = Curve::linear;
    std::array<std::int32_t, 4> values{};
    std::optional<Tangents> tangents;
};

/// Reads the points of all envelopes. If any envelope has version 3 (Teeworlds 0.7), each point has
/// 22 ints, including its tangents. DDNet stores tangents in a separate item, with 16 ints per
/// point.
[[nodiscard]] std::vector<EnvelopePoint> read_envelope_points(const Map& map);

struct FixedPoint {
    std::int32_t x = 0, y = 0;

    friend bool operator==(const FixedPoint&, const FixedPoint&) = default;
};

/// Units:   positions in 22.10 fixed point pixels, texture coordinates in 22.10, offsets in ms.
struct Quad {
    std::array<FixedPoint, 4> corners; ///< top left, top right, bottom left, bottom right
    FixedPoint pivot;
    std::array<Color, 4> colors;
    std::array<FixedPoint, 4> texture;
    std::int32_t position_envelope = -1, position_envelope_offset = 0;
    std::int32_t color_envelope = -1, color_envelope_offset = 0;
};

/// Errors:  wrong_record_size, those of Datafile::block.
[[nodiscard]] Result<std::vector<Quad>> read_quads(const Map& map, const QuadLayer& layer);

/// Units:   position and size in 22.10 fixed point pixels, delay in s, offsets in ms.
struct SoundSource {
    FixedPoint position;
    bool looping = false;
    bool panning = false;
    std::int32_t delay = 0;
    std::int32_t falloff = 0;
    std::int32_t position_envelope = -1, position_envelope_offset = 0;
    std::int32_t sound_envelope = -1, sound_envelope_offset = 0;
    bool circle = false;
    std::int32_t width = 0; ///< the radius of a circle
    std::int32_t height = 0;
};

/// Reads the sources of a sound layer. In a layer of the old type (kLayerOldSounds), all sources
/// are circles with panning.
///
/// Errors:  wrong_record_size, those of Datafile::block.
[[nodiscard]] Result<std::vector<SoundSource>> read_sources(const Map& map,
                                                            const SoundLayer& layer);

/// Reads and unpacks the tiles of a plain or game layer: 4 bytes per tile.
///
/// Errors:  those of load_tiles.
[[nodiscard]] Result<Block> read_tiles(const Map& map, const TileLayer& layer);

/// A UUID: 16 bytes in the order of its text form.
using Uuid = std::array<std::uint8_t, 16>;

// The UUIDs of DDNet's item types. They are version 3 UUIDs of the names in the comments below.
inline constexpr Uuid kUuidAutomapper = { // mapitemtype-automapper-config@ddnet.tw
    0x3e, 0x1b, 0x27, 0x16, 0x17, 0x8c, 0x39, 0x78, 0x9b, 0xd9, 0xb1, 0x1a, 0xe0, 0x41, 0x0d, 0xd8};
inline constexpr Uuid kUuidBezierPoints = { // mapitemtype-envpoints-bezier@ddnet.tw
    0x3a, 0xb4, 0xf8, 0x4d, 0xd9, 0xcc, 0x3c, 0x78, 0xb5, 0x85, 0x0d, 0x6c, 0xcd, 0xb2, 0xe2, 0x5c};
inline constexpr Uuid kUuidTest = { // mapitemtype-test@ddnet.tw
    0xb1, 0xab, 0x21, 0x86, 0x5a, 0xc3, 0x39, 0xd9, 0x9f, 0xbc, 0x47, 0xcf, 0x03, 0xef, 0xdf, 0x1e};
inline constexpr Uuid kUuidGroup = { // mapitemtype-group@ddnet.tw, 2023 only
    0x4a, 0x26, 0xca, 0x1f, 0x64, 0xbd, 0x30, 0xe3, 0x90, 0x7a, 0x70, 0x7e, 0xac, 0xd1, 0xf0, 0x80};

/// Returns the UUID as lower-case hex digits in the form 8-4-4-4-12.
[[nodiscard]] std::string to_text(const Uuid& uuid);

struct UuidType {
    std::uint16_t type = 0; ///< the type number that stands for the UUID in this file
    Uuid uuid{};

    friend bool operator==(const UuidType&, const UuidType&) = default;
};

/// Returns the UUID types that a file defines, including unknown UUIDs. Each type number is listed
/// once.
[[nodiscard]] std::vector<UuidType> uuid_types(const Datafile& file);
[[nodiscard]] std::optional<std::uint16_t> find_uuid_type(const Datafile& file, const Uuid& uuid);
/// Returns the item with the given index among the items of a UUID type; nullopt if it does not
/// exist.
[[nodiscard]] std::optional<ItemView> find_uuid_item(const Datafile& file, const Uuid& uuid,
                                                     std::int64_t index = 0);

/// An editor's settings for filling a layer automatically.
struct Automapper {
    std::int32_t version = 0;
    std::int32_t group = 0;
    std::int32_t layer = 0; ///< index among the layers of the group
    std::int32_t config = -1;
    std::int32_t seed = 0;
    bool automatic = false;
};

[[nodiscard]] std::vector<Automapper> read_automappers(const Datafile& file);

/// The parallax zoom of a group. Only DDNet of 2023 wrote it.
struct GroupExtra {
    std::int32_t version = 0;
    std::int32_t parallax_zoom = 0; ///< percent
};

[[nodiscard]] std::vector<GroupExtra> read_group_extras(const Datafile& file);

} // namespace tw::map
