#pragma once

#include "map/datafile.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tw::map {

/// 16 bytes in the order they are written down.
using Uuid = std::array<std::uint8_t, 16>;

/// Names of item types that DDNet gives by UUID: the version 3 UUIDs of the names in the comments.
inline constexpr Uuid kUuidAutomapper = { // mapitemtype-automapper-config@ddnet.tw
    0x3e, 0x1b, 0x27, 0x16, 0x17, 0x8c, 0x39, 0x78, 0x9b, 0xd9, 0xb1, 0x1a, 0xe0, 0x41, 0x0d, 0xd8};
inline constexpr Uuid kUuidBezierPoints = { // mapitemtype-envpoints-bezier@ddnet.tw
    0x3a, 0xb4, 0xf8, 0x4d, 0xd9, 0xcc, 0x3c, 0x78, 0xb5, 0x85, 0x0d, 0x6c, 0xcd, 0xb2, 0xe2, 0x5c};
inline constexpr Uuid kUuidTest = { // mapitemtype-test@ddnet.tw
    0xb1, 0xab, 0x21, 0x86, 0x5a, 0xc3, 0x39, 0xd9, 0x9f, 0xbc, 0x47, 0xcf, 0x03, 0xef, 0xdf, 0x1e};
inline constexpr Uuid kUuidGroup = { // mapitemtype-group@ddnet.tw, 2023 only
    0x4a, 0x26, 0xca, 0x1f, 0x64, 0xbd, 0x30, 0xe3, 0x90, 0x7a, 0x70, 0x7e, 0xac, 0xd1, 0xf0, 0x80};

/// 8-4-4-4-12 lower-case hex digits.
[[nodiscard]] std::string to_text(const Uuid& uuid);

struct UuidType {
    std::uint16_t type = 0; ///< the number that stands for the UUID in this file
    Uuid uuid{};

    friend bool operator==(const UuidType&, const UuidType&) = default;
};

/// The UUIDs the file's index names, known or not, each type number once.
[[nodiscard]] std::vector<UuidType> uuid_types(const Datafile& file);
[[nodiscard]] std::optional<std::uint16_t> find_uuid_type(const Datafile& file, const Uuid& uuid);
/// The item of a UUID type with an index within the type.
[[nodiscard]] std::optional<ItemView> find_uuid_item(const Datafile& file, const Uuid& uuid,
                                                     std::int64_t index = 0);

/// How an editor fills a layer by itself.
struct Automapper {
    std::int32_t version = 0;
    std::int32_t group = 0;
    std::int32_t layer = 0; ///< within the group
    std::int32_t config = -1;
    std::int32_t seed = 0;
    bool automatic = false;
};

[[nodiscard]] std::vector<Automapper> read_automappers(const Datafile& file);

/// Parallax zoom of a group, written by DDNet in 2023 only.
struct GroupExtra {
    std::int32_t version = 0;
    std::int32_t parallax_zoom = 0; ///< percent
};

[[nodiscard]] std::vector<GroupExtra> read_group_extras(const Datafile& file);

} // namespace tw::map
