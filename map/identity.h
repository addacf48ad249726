#pragma once

#include "map/datafile.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::map {

using Sha256 = std::array<std::uint8_t, 32>;

/// The hashes and size by which servers announce a map, computed over the bytes of the map file.
struct Identity {
    std::uint32_t crc = 0; ///< CRC-32 of zlib
    Sha256 sha256{};
    std::uint64_t size = 0; ///< bytes

    friend bool operator==(const Identity&, const Identity&) = default;
};

[[nodiscard]] Sha256 sha256_of(std::span<const std::byte> bytes);
[[nodiscard]] Identity identify(std::span<const std::byte> file);

/// The hash as 64 lower-case hex digits.
[[nodiscard]] std::string to_hex(const Sha256& sha256);
/// The CRC as eight lower-case hex digits, as in the names of downloaded maps.
[[nodiscard]] std::string to_hex(std::uint32_t crc);
/// Computes a CRC-32 piece by piece. `before`: the result for the earlier pieces; 0 for the first.
[[nodiscard]] std::uint32_t crc_of(std::uint32_t before, std::span<const std::byte> piece);

/// Whether a map may have this name: it is a valid file name on all systems and cannot leave a
/// folder.
/// Source:  DDNet str_valid_filename.
[[nodiscard]] bool is_valid_map_name(std::string_view name);

/// A file with the right name but wrong contents.
struct WrongMap {
    std::filesystem::path path;
    Identity identity;
};

/// Searches the folders in order for the map a server announced; in each, the folder itself, then
/// its `maps` and `downloadedmaps`: NAME.map, NAME_<sha256>.map, NAME_<crc>.map.
///
/// A file is found only if its SHA-256 matches; if no SHA-256 was announced, its CRC must match.
/// Files with an invalid name and unreadable or too large files are not found.
/// Reports: files of the right name that do not match, in `wrong` if given.
/// Source:  DDNet CClient::LoadMapSearch.
[[nodiscard]] std::optional<std::filesystem::path>
find_map(std::span<const std::filesystem::path> folders, std::string_view name, std::uint32_t crc,
         const std::optional<Sha256>& sha256, std::vector<WrongMap>* wrong = nullptr,
         const Limits& limits = {});

} // namespace tw::map
