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

/// What a server announces about its map; computed over the file's bytes as stored.
struct Identity {
    std::uint32_t crc = 0; ///< CRC-32 of zlib
    Sha256 sha256{};
    std::uint64_t size = 0; ///< bytes

    friend bool operator==(const Identity&, const Identity&) = default;
};

[[nodiscard]] Sha256 sha256_of(std::span<const std::byte> bytes);
[[nodiscard]] Identity identify(std::span<const std::byte> file);

/// 64 lower-case hex digits.
[[nodiscard]] std::string to_hex(const Sha256& sha256);
/// Eight lower-case hex digits, as in the names of downloaded maps.
[[nodiscard]] std::string to_hex(std::uint32_t crc);
/// The checksum of what comes in pieces: that of all before, and the next one. It begins with 0.
[[nodiscard]] std::uint32_t crc_of(std::uint32_t before, std::span<const std::byte> piece);

/// True if a map may have this name: it can be a file name everywhere and cannot leave a folder.
///
/// Refused: empty, more than 127 bytes, not UTF-8, control characters, \ / | : * ? < > ", white
///          space other than single inner spaces, a trailing dot, names Windows reserves.
/// Source:  DDNet str_valid_filename.
[[nodiscard]] bool is_valid_map_name(std::string_view name);

/// A file with the right name and the wrong bytes.
struct WrongMap {
    std::filesystem::path path;
    Identity identity;
};

/// Looks for the map a server announced, in the order of the folders; in each folder itself, then
/// in its `maps` and `downloadedmaps`: NAME.map, NAME_<sha256>.map, NAME_<crc>.map.
///
/// A file counts only if its SHA-256 matches, or, when none was announced, its CRC. Refused names
/// and unreadable or too large files are not found.
/// Reports: files of the right name that do not match, in `wrong` if given.
/// Source:  DDNet CClient::LoadMapSearch.
[[nodiscard]] std::optional<std::filesystem::path>
find_map(std::span<const std::filesystem::path> folders, std::string_view name, std::uint32_t crc,
         const std::optional<Sha256>& sha256, std::vector<WrongMap>* wrong = nullptr,
         const Limits& limits = {});

} // namespace tw::map
