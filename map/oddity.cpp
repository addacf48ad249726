#include "map/oddity.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tw::map {
namespace {

using enum OddityId;

constexpr std::array kOddities = {
    OddityInfo{header_sizes, "header_sizes", "size or swaplen in the header is wrong", true},
    OddityInfo{header_sizes_short, "header_sizes_short",
               "size and swaplen leave out the size array, as writers did until about 2010", false},
    OddityInfo{trailing_bytes, "trailing_bytes", "the file goes on after its last block", true},
    OddityInfo{empty_item_type, "empty_item_type", "an item type without items is listed", true},
    OddityInfo{duplicate_item_id, "duplicate_item_id", "two items of a type have the same id",
               true},
    OddityInfo{first_block_offset, "first_block_offset", "the first data block is not at 0", true},
    OddityInfo{block_without_bytes, "block_without_bytes", "a data block has no stored bytes",
               true},
    OddityInfo{empty_block, "empty_block", "a data block declares the size 0", false},
    OddityInfo{version_item_missing, "version_item_missing", "the version item is missing", true},
    OddityInfo{version_item_unknown, "version_item_unknown",
               "the version item says something else than 1", true},
    OddityInfo{group_item_short, "group_item_short", "a group item is too short to be one", true},
    OddityInfo{group_layers_out_of_range, "group_layers_out_of_range",
               "a group names layers that do not exist", true},
    OddityInfo{layer_in_two_groups, "layer_in_two_groups", "a layer is in two groups", true},
    OddityInfo{layer_item_short, "layer_item_short", "a layer item is too short to be one", true},
    OddityInfo{tile_block_shared, "tile_block_shared", "two tile layers share a data block", true},
    OddityInfo{tilemap_version, "tilemap_version", "a tile layer's version is not 2, 3 or 4", true},
    OddityInfo{several_physics_flags, "several_physics_flags",
               "a tile layer claims to be several physics layers at once", true},
    OddityInfo{physics_index_missing, "physics_index_missing",
               "a physics layer's item ends before the index of its data", true},
    OddityInfo{tile_block_missing, "tile_block_missing",
               "a tile layer names no data block that exists", true},
    OddityInfo{layer_name_not_utf8, "layer_name_not_utf8", "a tile layer's name is not UTF-8",
               true},
    OddityInfo{layer_color, "layer_color", "a plain tile layer's colour is outside 0..255", true},
    OddityInfo{game_layer_too_small, "game_layer_too_small",
               "the game layer is narrower or lower than two tiles", true},
    OddityInfo{tile_layer_too_small, "tile_layer_too_small",
               "a tile layer that is not the game's is narrower or lower than two tiles", true},
    OddityInfo{layer_dimensions, "layer_dimensions",
               "a tile layer has more tiles than 31 bits can count", true},
    OddityInfo{physics_layer_too_small, "physics_layer_too_small",
               "a physics layer has fewer tiles than the game layer", true},
    OddityInfo{physics_layer_differs, "physics_layer_differs",
               "a physics layer has other dimensions than the game layer", false},
    OddityInfo{physics_layer_twice, "physics_layer_twice",
               "there are several layers of a physics kind; the last one counts", false},
    OddityInfo{physics_data_unusable, "physics_data_unusable",
               "a physics layer's data is missing, too short or does not inflate", false},
    OddityInfo{physics_layer_packed, "physics_layer_packed",
               "a DDNet physics layer has tilemap version 4, which is only for plain tiles", false},
    OddityInfo{packed_entries_left, "packed_entries_left",
               "packed tiles are left over when the layer is full", true},
    OddityInfo{packed_run_cut, "packed_run_cut", "the last run of packed tiles passes the end",
               false},
    OddityInfo{packed_reserved_set, "packed_reserved_set",
               "packed tiles of the game layer have a reserved byte that is not 0", true},
    OddityInfo{skip_bytes_set, "skip_bytes_set",
               "tiles of an unpacked layer have skip or reserved bytes", true},
};

} // namespace

std::span<const OddityInfo> oddity_table() {
    return kOddities;
}

const OddityInfo& oddity_info(OddityId id) {
    return kOddities.at(static_cast<std::size_t>(id));
}

void Oddities::add(OddityId id, std::uint64_t where) {
    const auto known = std::find_if(list_.begin(), list_.end(),
                                    [id](const Oddity& oddity) { return oddity.id == id; });
    if (known != list_.end()) {
        known->count += known->count < std::numeric_limits<std::uint32_t>::max() ? 1U : 0U;
        return;
    }
    list_.push_back({id, static_cast<std::uint32_t>(where), 1});
}

bool Oddities::contains(OddityId id) const {
    return std::any_of(list_.begin(), list_.end(),
                       [id](const Oddity& oddity) { return oddity.id == id; });
}

std::optional<OddityId> Oddities::first_strict() const {
    for (const Oddity& oddity : list_) {
        if (oddity_info(oddity.id).strict) {
            return oddity.id;
        }
    }
    return std::nullopt;
}

} // namespace tw::map
