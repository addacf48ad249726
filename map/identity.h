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
    std::uint32_t crc = 0; ///< CRC-32, as zlib computes it
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
/// Computes a CRC-32 piece by piece. `before`: the result for the earlier pieces; 0 for the first one.
[[nodiscard]] std::uint32_t continue_crc(std::uint32_t before, std::span<const std::byte> piece);

/// Whether a map may have this name: it is a valid file name on all systems and cannot point to another
/// folder.
/// Source:  DDNet str_valid_filename.
[[nodiscard]] bool is_valid_map_name(std::string_view name);

/// A file that has the announced name but other contents.
struct WrongMap {
    std::filesystem::path path;
    Identity identity;
};

/// Searches the folders, in order, for the map that a server announced. Each folder is searched itself,
/// then its subfolders `maps` and `downloadedmaps`. File names: NAME.map, NAME_<sha256>.map and
/// NAME_<crc>.map.
///
/// A file is found only if its SHA-256 is the announced one or, if no SHA-256 was announced, its CRC.
/// Files that have an invalid name, are unreadable, or are too large are not found.
/// Reports: files that have the announced name but do not match, in `wrong` if given.
/// Source:  DDNet CClient::LoadMapSearch.
[[nodiscard]] std::optional<std::filesystem::path>
find_map(std::span<const std::filesystem::path> folders, std::string_view name, std::uint32_t crc,
         const std::optional<Sha256>& sha256, std::vector<WrongMap>* wrong = nullptr,
         const Limits& limits = {});

} // namespace tw::map
