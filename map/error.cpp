#include "map/error.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tw::map {
namespace {

constexpr std::array kErrors = {
    ErrorInfo{MapErrc::none, "none", "nothing went wrong"},
    ErrorInfo{MapErrc::file_unreadable, "file_unreadable", "the file cannot be opened or read"},
    ErrorInfo{MapErrc::file_too_large, "file_too_large", "the file is larger than the set limit"},
    ErrorInfo{MapErrc::file_too_short, "file_too_short",
              "the file ends inside the 36 bytes of the datafile header"},
    ErrorInfo{MapErrc::bad_magic, "bad_magic", "the file starts with neither DATA nor ATAD"},
    ErrorInfo{MapErrc::bad_version, "bad_version", "the datafile version is neither 3 nor 4"},
    ErrorInfo{MapErrc::negative_header_field, "negative_header_field",
              "a count or size in the datafile header is negative"},
    ErrorInfo{MapErrc::too_many_item_types, "too_many_item_types",
              "the header announces more than 65536 item types"},
    ErrorInfo{MapErrc::items_unaligned, "items_unaligned",
              "the size of the item section is not a multiple of four"},
    ErrorInfo{MapErrc::file_truncated, "file_truncated",
              "the file is shorter than its header says"},
    ErrorInfo{MapErrc::item_type_out_of_range, "item_type_out_of_range",
              "an item type is outside 0..65535"},
    ErrorInfo{MapErrc::item_type_duplicate, "item_type_duplicate",
              "the same item type is listed twice"},
    ErrorInfo{MapErrc::item_type_bad_range, "item_type_bad_range",
              "the items of the types do not follow each other without gaps"},
    ErrorInfo{MapErrc::item_bad_offset, "item_bad_offset",
              "an item does not start where the one before it ends"},
    ErrorInfo{MapErrc::item_bad_size, "item_bad_size",
              "an item has a size that is negative, not a multiple of four or too large"},
    ErrorInfo{MapErrc::item_type_mismatch, "item_type_mismatch",
              "an item's type is not that of the range it is in"},
    ErrorInfo{MapErrc::block_bad_offset, "block_bad_offset",
              "a data block starts before the one before it or past the end"},
    ErrorInfo{MapErrc::block_negative_size, "block_negative_size",
              "a data block declares a negative size"},
    ErrorInfo{MapErrc::no_version_item, "no_version_item",
              "the datafile has no version item and its items do not look like those of a map"},
    ErrorInfo{MapErrc::unknown_map_version, "unknown_map_version",
              "the map's version item is not 1, and its items do not look like those of a map"},
    ErrorInfo{MapErrc::no_game_layer, "no_game_layer", "no group holds a game layer"},
    ErrorInfo{MapErrc::layer_bad_dimensions, "layer_bad_dimensions",
              "a tile layer has no width, no height or too many tiles"},
    ErrorInfo{MapErrc::tile_data_missing, "tile_data_missing",
              "a tile layer names no data block that exists"},
    ErrorInfo{MapErrc::tile_data_short, "tile_data_short",
              "a tile layer's data ends before its last tile"},
    ErrorInfo{MapErrc::block_index_out_of_range, "block_index_out_of_range",
              "the file has no data block of that index"},
    ErrorInfo{MapErrc::block_empty, "block_empty", "the data block is empty"},
    ErrorInfo{MapErrc::block_size_not_possible, "block_size_not_possible",
              "the data block declares a size its stored bytes cannot inflate to"},
    ErrorInfo{MapErrc::block_too_large, "block_too_large",
              "the data block is larger than the set limit"},
    ErrorInfo{MapErrc::block_corrupt, "block_corrupt",
              "the data block is not a complete zlib stream"},
    ErrorInfo{MapErrc::block_wrong_size, "block_wrong_size",
              "the data block inflates to a size other than it declares"},
    ErrorInfo{MapErrc::wrong_record_size, "wrong_record_size",
              "the data block holds fewer records than its item says"},
    ErrorInfo{MapErrc::unknown_tile_record, "unknown_tile_record",
              "the tile layer is of a kind whose records are not known"},
    ErrorInfo{MapErrc::picture_too_large, "picture_too_large",
              "the picture would have more pixels than the set limit"},
    ErrorInfo{MapErrc::out_of_memory, "out_of_memory", "there is not enough memory for the data"},
};

} // namespace

std::span<const ErrorInfo> error_table() {
    return kErrors;
}

const ErrorInfo& error_info(MapErrc code) {
    const auto index = static_cast<std::size_t>(code);
    return kErrors.at(index < kErrors.size() ? index : 0);
}

namespace {

using enum WarningId;

constexpr std::array kWarnings = {
    WarningInfo{header_sizes, "header_sizes", "size or swaplen in the header is wrong", true},
    WarningInfo{header_sizes_short, "header_sizes_short",
                "size and swaplen leave out the size array, as writers did until about 2010",
                false},
    WarningInfo{trailing_bytes, "trailing_bytes", "the file continues after its last block", true},
    WarningInfo{empty_item_type, "empty_item_type", "an item type without items is listed", true},
    WarningInfo{duplicate_item_id, "duplicate_item_id", "two items of a type have the same id",
                true},
    WarningInfo{first_block_offset, "first_block_offset", "the first data block is not at 0", true},
    WarningInfo{block_without_bytes, "block_without_bytes", "a data block has no stored bytes",
                true},
    WarningInfo{empty_block, "empty_block", "a data block declares the size 0", false},
    WarningInfo{version_item_missing, "version_item_missing", "the version item is missing", true},
    WarningInfo{version_item_unknown, "version_item_unknown", "the version item is not 1", true},
    WarningInfo{group_item_short, "group_item_short", "a group item is too short", true},
    WarningInfo{group_layers_out_of_range, "group_layers_out_of_range",
                "a group names layers that do not exist", true},
    WarningInfo{layer_in_two_groups, "layer_in_two_groups", "a layer is in two groups", true},
    WarningInfo{layer_item_short, "layer_item_short", "a layer item is too short", true},
    WarningInfo{tile_block_shared, "tile_block_shared", "two tile layers share a data block", true},
    WarningInfo{tilemap_version, "tilemap_version", "a tile layer's version is not 2, 3 or 4",
                true},
    WarningInfo{several_physics_flags, "several_physics_flags",
                "a tile layer claims to be several physics layers at once", true},
    WarningInfo{physics_index_missing, "physics_index_missing",
                "a physics layer's item ends before the index of its data", true},
    WarningInfo{tile_block_missing, "tile_block_missing",
                "a tile layer names no data block that exists", true},
    WarningInfo{layer_name_not_utf8, "layer_name_not_utf8", "a tile layer's name is not UTF-8",
                true},
    WarningInfo{layer_color, "layer_color", "a plain tile layer's colour is outside 0..255", true},
    WarningInfo{game_layer_too_small, "game_layer_too_small",
                "the game layer is narrower or lower than two tiles", true},
    WarningInfo{tile_layer_too_small, "tile_layer_too_small",
                "a tile layer other than the game's is narrower or lower than two tiles", true},
    WarningInfo{layer_dimensions, "layer_dimensions",
                "a tile layer has more tiles than 31 bits can count", true},
    WarningInfo{physics_layer_too_small, "physics_layer_too_small",
                "a physics layer has fewer tiles than the game layer", true},
    WarningInfo{physics_layer_differs, "physics_layer_differs",
                "a physics layer has other dimensions than the game layer", false},
    WarningInfo{physics_layer_twice, "physics_layer_twice",
                "there are several layers of a physics kind; the last one counts", false},
    WarningInfo{physics_data_unusable, "physics_data_unusable",
                "a physics layer's data is missing, too short or does not inflate", false},
    WarningInfo{physics_layer_packed, "physics_layer_packed",
                "a DDNet physics layer has tilemap version 4, which is only for plain tiles",
                false},
    WarningInfo{packed_entries_left, "packed_entries_left",
                "packed tiles are left over when the layer is full", true},
    WarningInfo{packed_run_cut, "packed_run_cut", "the last run of packed tiles passes the end",
                false},
    WarningInfo{packed_reserved_set, "packed_reserved_set",
                "packed tiles of the game layer have a reserved byte that is not 0", true},
    WarningInfo{skip_bytes_set, "skip_bytes_set",
                "tiles of an unpacked layer have skip or reserved bytes", true},
};

} // namespace

std::span<const WarningInfo> warning_table() {
    return kWarnings;
}

const WarningInfo& warning_info(WarningId id) {
    return kWarnings.at(static_cast<std::size_t>(id));
}

void Warnings::add(WarningId id, std::uint64_t where) {
    const auto known =
        std::ranges::find_if(list_, [id](const Warning& warning) { return warning.id == id; });
    if (known != list_.end()) {
        known->count += known->count < std::numeric_limits<std::uint32_t>::max() ? 1U : 0U;
        return;
    }
    list_.push_back({id, static_cast<std::uint32_t>(where), 1});
}

bool Warnings::contains(WarningId id) const {
    return std::ranges::any_of(list_, [id](const Warning& warning) { return warning.id == id; });
}

std::optional<WarningId> Warnings::first_strict() const {
    for (const Warning& warning : list_) {
        if (warning_info(warning.id).strict) {
            return warning.id;
        }
    }
    return std::nullopt;
}

} // namespace tw::map
