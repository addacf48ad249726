#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::map {

/// All errors: X(name, one sentence in plain words).
#define TW_MAP_ERRORS(X)                                                                           \
    X(none, "nothing went wrong")                                                                  \
    X(file_unreadable, "the file cannot be opened or read")                                        \
    X(file_too_large, "the file is larger than the set limit")                                     \
    X(file_too_short, "the file ends inside the 36 bytes of the datafile header")                  \
    X(bad_magic, "the file starts with neither DATA nor ATAD")                                     \
    X(bad_version, "the datafile version is neither 3 nor 4")                                      \
    X(negative_header_field, "a count or size in the datafile header is negative")                 \
    X(too_many_item_types, "the header announces more than 65536 item types")                      \
    X(items_unaligned, "the size of the item section is not a multiple of four")                   \
    X(file_truncated, "the file is shorter than its header says")                                  \
    X(item_type_out_of_range, "an item type is outside 0..65535")                                  \
    X(item_type_duplicate, "the same item type is listed twice")                                   \
    X(item_type_bad_range, "the items of the types do not follow each other without gaps")         \
    X(item_bad_offset, "an item does not start where the one before it ends")                      \
    X(item_bad_size, "an item has a size that is negative, not a multiple of four or too large")   \
    X(item_type_mismatch, "an item's type is not that of the range it is in")                      \
    X(block_bad_offset, "a data block starts before the one before it or past the end")            \
    X(block_negative_size, "a data block declares a negative size")                                \
    X(no_version_item,                                                                             \
      "the datafile has no version item and its items do not look like those of a map")            \
    X(unknown_map_version,                                                                         \
      "the map's version item is not 1, and its items do not look like those of a map")            \
    X(no_game_layer, "the datafile has no game layer in any group")                                \
    X(layer_bad_dimensions, "a tile layer has no width, no height or too many tiles")              \
    X(tile_data_missing, "a tile layer names no data block that exists")                           \
    X(tile_data_short, "a tile layer's data ends before its last tile")                            \
    X(block_index_out_of_range, "the file has no data block of that index")                        \
    X(block_empty, "the data block is empty")                                                      \
    X(block_size_not_possible,                                                                     \
      "the data block declares a size its stored bytes cannot inflate to")                         \
    X(block_too_large, "the data block is larger than the set limit")                              \
    X(block_corrupt, "the data block is not a complete zlib stream")                               \
    X(block_wrong_size, "the data block inflates to a size other than it declares")                \
    X(wrong_record_size, "the data block holds fewer records than its item says")                  \
    X(unknown_tile_record, "the tile layer is of a kind whose records are not known")              \
    X(picture_too_large, "the picture would have more pixels than the set limit")                  \
    X(out_of_memory, "there is not enough memory for the data")

#define TW_ENUMERATOR(name, ...) name,

/// Why a map cannot be used; see `error_info`.
enum class MapErrc : std::uint8_t { TW_MAP_ERRORS(TW_ENUMERATOR) };

/// The first error in a map file, and its position.
///
/// Units:   offset in bytes from the start of the file; block and item are indices in the
///            datafile.
struct MapError {
    static constexpr std::uint32_t kNoIndex = 0xffffffffU;

    MapErrc code = MapErrc::none;
    std::uint64_t offset = 0;
    std::uint32_t block = kNoIndex; ///< the affected data block, or kNoIndex
    std::uint32_t item = kNoIndex;  ///< the affected item, or kNoIndex

    friend bool operator==(const MapError&, const MapError&) = default;
};

template <typename T>
using Result = tl::expected<T, MapError>;

struct ErrorInfo {
    MapErrc code;
    std::string_view name;     ///< stable identifier, snake_case
    std::string_view sentence; ///< one sentence in plain words
};

inline constexpr std::array kErrorTable{
#define TW_ROW(name, sentence) ErrorInfo{MapErrc::name, #name, sentence},
    TW_MAP_ERRORS(TW_ROW)
#undef TW_ROW
};

[[nodiscard]] constexpr const ErrorInfo& error_info(MapErrc code) {
    const auto index = static_cast<std::size_t>(code);
    return kErrorTable[index < kErrorTable.size() ? index : 0];
}

/// All warnings: X(name, one sentence in plain words, whether DDNet master rejects such maps).
#define TW_MAP_WARNINGS(X)                                                                         \
    X(header_sizes, "size or swaplen in the header is wrong", true)                                \
    X(header_sizes_short,                                                                          \
      "size and swaplen leave out the size array, as writers did until about 2010", false)         \
    X(trailing_bytes, "the file continues after its last block", true)                             \
    X(empty_item_type, "an item type without items is listed", true)                               \
    X(duplicate_item_id, "two items of a type have the same id", true)                             \
    X(first_block_offset, "the first data block is not at 0", true)                                \
    X(block_without_bytes, "a data block has no stored bytes", true)                               \
    X(empty_block, "a data block declares the size 0", false)                                      \
    X(version_item_missing, "the version item is missing", true)                                   \
    X(version_item_unknown, "the version item is not 1", true)                                     \
    X(group_item_short, "a group item is too short", true)                                         \
    X(group_layers_out_of_range, "a group names layers that do not exist", true)                   \
    X(layer_in_two_groups, "a layer is in two groups", true)                                       \
    X(layer_item_short, "a layer item is too short", true)                                         \
    X(tile_block_shared, "two tile layers share a data block", true)                               \
    X(tilemap_version, "a tile layer's version is not 2, 3 or 4", true)                            \
    X(several_physics_flags, "a tile layer claims to be several physics layers at once", true)     \
    X(physics_index_missing, "a physics layer's item ends before the index of its data", true)     \
    X(tile_block_missing, "a tile layer names no data block that exists", true)                    \
    X(layer_name_not_utf8, "a tile layer's name is not UTF-8", true)                               \
    X(layer_color, "a plain tile layer's colour is outside 0..255", true)                          \
    X(game_layer_too_small, "the game layer is narrower or lower than two tiles", true)            \
    X(tile_layer_too_small,                                                                        \
      "a tile layer other than the game's is narrower or lower than two tiles", true)              \
    X(layer_dimensions, "a tile layer has more tiles than 31 bits can count", true)                \
    X(physics_layer_too_small, "a physics layer has fewer tiles than the game layer", true)        \
    X(physics_layer_differs, "a physics layer has other dimensions than the game layer", false)    \
    X(physics_layer_twice, "there are several layers of a physics kind; the last one counts",      \
      false)                                                                                       \
    X(physics_data_unusable, "a physics layer's data is missing, too short or does not inflate",   \
      false)                                                                                       \
    X(physics_layer_packed,                                                                        \
      "a DDNet physics layer has tilemap version 4, which is only for plain tiles", false)         \
    X(packed_entries_left, "packed tiles are left over when the layer is full", true)              \
    X(packed_run_cut, "the last run of packed tiles passes the end", false)                        \
    X(packed_reserved_set, "packed tiles of the game layer have a reserved byte that is not 0",    \
      true)                                                                                        \
    X(skip_bytes_set, "tiles of an unpacked layer have skip or reserved bytes", true)

/// Kinds of unusual content in a usable map; see `warning_info`.
enum class WarningId : std::uint8_t { TW_MAP_WARNINGS(TW_ENUMERATOR) };

#undef TW_ENUMERATOR

struct WarningInfo {
    WarningId id;
    std::string_view name;
    std::string_view sentence;
    bool strict; ///< DDNet master rejects maps with this warning
};

inline constexpr std::array kWarningTable{
#define TW_ROW(name, sentence, strict) WarningInfo{WarningId::name, #name, sentence, strict},
    TW_MAP_WARNINGS(TW_ROW)
#undef TW_ROW
};

[[nodiscard]] constexpr const WarningInfo& warning_info(WarningId id) {
    return kWarningTable[static_cast<std::size_t>(id)];
}

/// All warnings of one kind about a file.
struct Warning {
    WarningId id;
    /// Where the warning occurs first: index of the item type, item, layer or block; 0 if the
    /// warning is about the file.
    std::uint32_t where;
    std::uint32_t count; ///< number of occurrences

    friend bool operator==(const Warning&, const Warning&) = default;
};

/// The warnings about a file. The list has one entry per kind, so a hostile file cannot make it
/// long.
class Warnings {
  public:
    void add(WarningId id, std::uint64_t where = 0) {
        const auto known = std::ranges::find(list_, id, &Warning::id);
        if (known == list_.end()) {
            list_.push_back({id, static_cast<std::uint32_t>(where), 1});
        } else if (known->count < std::numeric_limits<std::uint32_t>::max()) {
            ++known->count;
        }
    }

    [[nodiscard]] std::span<const Warning> list() const { return list_; }

    [[nodiscard]] bool contains(WarningId id) const {
        return std::ranges::find(list_, id, &Warning::id) != list_.end();
    }

    /// Returns the first warning for which DDNet master rejects the file, or nullopt.
    [[nodiscard]] std::optional<WarningId> first_warning_rejected_by_ddnet() const {
        const auto found = std::ranges::find_if(
            list_, [](const Warning& warning) { return warning_info(warning.id).strict; });
        return found == list_.end() ? std::nullopt : std::optional{found->id};
    }

  private:
    std::vector<Warning> list_;
};

} // namespace tw::map
