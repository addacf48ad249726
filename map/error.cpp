#include "map/error.h"

#include <array>

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

} // namespace tw::map
