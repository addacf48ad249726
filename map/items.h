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
struct MapInfo {
    std::size_t num_item_ints = 0;
    std::int32_t version = 0;
    std::optional<std::string> author;      ///< at most 31 bytes
    std::optional<std::string> map_version; ///< at most 15 bytes
    std::optional<std::string> credits;     ///< at most 127 bytes
    std::optional<std::string> license;     ///< at most 31 bytes
    /// Console commands in the file's order, not necessarily UTF-8; nullopt if the map has none.
    std::optional<std::vector<std::string>> settings;
};

/// Reads the info item. Returns nullopt if the map has no info item, which is common. A text is
/// nullopt if it is not UTF-8 or not a single NUL-terminated string. A long text is truncated.
[[nodiscard]] std::optional<MapInfo> read_info(const Map& map);

/// An image that layers of the map use.
struct Image {
    std::int32_t version = 0;
    std::int32_t width = 0, height = 0;
    bool external = false;           ///< the image is not in the map, but a file of the client
    std::optional<std::string> name; ///< nullopt if the name is unreadable or unsafe as a file name
    std::int32_t data = -1;          ///< index of the data block with the pixels
    std::optional<std::int32_t> format; ///< in version 2: 1 is RGBA, 0 is RGB
};

[[nodiscard]] std::optional<Image> read_image(const Map& map, std::size_t index);
/// Reads the pixels of an embedded image, rows from the top: RGBA with 4 bytes per pixel, or RGB
/// with 3 bytes if Image::format is 0.
///
/// Errors:  wrong_record_size; layer_bad_dimensions if a side is below 1; those of Datafile::block.
[[nodiscard]] Result<Block> read_pixels(const Map& map, const Image& image);

/// An envelope: values that change over time, for example the movement of a quad.
struct Envelope {
    std::size_t num_item_ints = 0;
    std::int32_t version = 0;
    std::int32_t channels = 0; ///< number of values per point: 1 sound, 3 position, 4 colour
    std::int32_t first_point = 0;
    std::int32_t num_points = 0;
};

[[nodiscard]] std::optional<Envelope> read_envelope(const Map& map, std::size_t index);

/// Reads and unpacks the tiles of a plain or game layer: 4 bytes per tile.
///
/// Errors:  those of load_tiles.
[[nodiscard]] Result<Block> read_tiles(const Map& map, const TileLayer& layer);

/// A UUID: 16 bytes in the order of its text form.
using Uuid = std::array<std::uint8_t, 16>;

/// Returns the UUID as lower-case hex digits in the form 8-4-4-4-12.
[[nodiscard]] std::string to_text(const Uuid& uuid);

/// An item type that is defined by a UUID.
struct UuidType {
    std::uint16_t type = 0; ///< the type number that stands for the UUID in this file
    Uuid uuid{};

    friend bool operator==(const UuidType&, const UuidType&) = default;
};

/// Returns the UUID types that a file defines, including unknown UUIDs. Each type number is listed
/// once.
[[nodiscard]] std::vector<UuidType> uuid_types(const Datafile& file);

} // namespace tw::map
