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

/// The hashes and the size of a map file, which servers announce to identify a map.
struct Identity {
    std::uint32_t crc = 0; ///< CRC-32, as zlib computes it
    Sha256 sha256{};
    std::uint64_t size = 0; ///< bytes

    friend bool operator==(const Identity&, const Identity&) = default;
};

[[nodiscard]] Sha256 sha256_of(std::span<const std::byte> bytes);
[[nodiscard]] Identity identify(std::span<const std::byte> file);

/// Returns the hash as 64 lower-case hex digits.
[[nodiscard]] std::string to_hex(const Sha256& sha256);
/// Returns the CRC as eight lower-case hex digits, as in the names of downloaded maps.
[[nodiscard]] std::string to_hex(std::uint32_t crc);
/// Computes the CRC-32 of data that is passed in pieces. `before`: the result for all earlier
/// pieces; 0 for the first piece.
[[nodiscard]] std::uint32_t continue_crc(std::uint32_t before, std::span<const std::byte> piece);

/// Whether a map may have the given name. A valid name is a valid file name on all systems and
/// cannot point to another folder.
/// Source:  DDNet str_valid_filename.
[[nodiscard]] bool is_valid_map_name(std::string_view name);

/// A file that has the name of an announced map, but not its contents.
struct WrongMap {
    std::filesystem::path path;
    Identity identity;
};

/// Searches the folders, in order, for the map that a server announced. Searches each folder, then
/// its subfolders `maps` and `downloadedmaps`, for NAME.map, NAME_<sha256>.map and NAME_<crc>.map.
///
/// Returns a file only if its SHA-256 is `sha256` or, if `sha256` is nullopt, if its CRC is `crc`.
/// Ignores files that have an invalid name, are unreadable or are too large.
/// Reports: files that have the announced name but other contents, in `wrong` if it is not null.
/// Source:  DDNet CClient::LoadMapSearch.
[[nodiscard]] std::optional<std::filesystem::path>
find_map(std::span<const std::filesystem::path> folders, std::string_view name, std::uint32_t crc,
         const std::optional<Sha256>& sha256, std::vector<WrongMap>* wrong = nullptr,
         const Limits& limits = {});

} // namespace tw::map
