#include "map/warning.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tw::map {
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
    const auto known = std::find_if(list_.begin(), list_.end(),
                                    [id](const Warning& warning) { return warning.id == id; });
    if (known != list_.end()) {
        known->count += known->count < std::numeric_limits<std::uint32_t>::max() ? 1U : 0U;
        return;
    }
    list_.push_back({id, static_cast<std::uint32_t>(where), 1});
}

bool Warnings::contains(WarningId id) const {
    return std::any_of(list_.begin(), list_.end(),
                       [id](const Warning& warning) { return warning.id == id; });
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
