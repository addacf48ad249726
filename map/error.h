#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::map {

/// Why a map cannot be used; see `error_info`.
enum class MapErrc : std::uint8_t {
    none,
    file_unreadable,
    file_too_large,
    file_too_short,
    bad_magic,
    bad_version,
    negative_header_field,
    too_many_item_types,
    items_unaligned,
    file_truncated,
    item_type_out_of_range,
    item_type_duplicate,
    item_type_bad_range,
    item_bad_offset,
    item_bad_size,
    item_type_mismatch,
    block_bad_offset,
    block_negative_size,
    no_version_item,
    unknown_map_version,
    no_game_layer,
    layer_bad_dimensions,
    tile_data_missing,
    tile_data_short,
    block_index_out_of_range,
    block_empty,
    block_size_not_possible,
    block_too_large,
    block_corrupt,
    block_wrong_size,
    wrong_record_size,
    unknown_tile_record,
    picture_too_large,
    out_of_memory,
};

/// The first error and its position.
///
/// Units:   offset in bytes from the start of the file; block and item are indices in the
///            datafile.
struct MapError {
    static constexpr std::uint32_t kNowhere = 0xffffffffU;

    MapErrc code = MapErrc::none;
    std::uint64_t offset = 0;
    std::uint32_t block = kNowhere; ///< the affected data block, or kNowhere
    std::uint32_t item = kNowhere;  ///< the affected item, or kNowhere

    friend bool operator==(const MapError&, const MapError&) = default;
};

template <typename T>
using Result = tl::expected<T, MapError>;

/// The description of an error.
struct ErrorInfo {
    MapErrc code;
    std::string_view name;     ///< stable identifier, snake_case
    std::string_view sentence; ///< one sentence in plain words
};

/// All errors, in the order of MapErrc.
[[nodiscard]] std::span<const ErrorInfo> error_table();
[[nodiscard]] const ErrorInfo& error_info(MapErrc code);

/// Kinds of unusual content in a usable map. `warning_info` describes each kind and tells whether
/// DDNet master rejects such maps.
enum class WarningId : std::uint8_t {
    header_sizes,
    header_sizes_short,
    trailing_bytes,
    empty_item_type,
    duplicate_item_id,
    first_block_offset,
    block_without_bytes,
    empty_block,
    version_item_missing,
    version_item_unknown,
    group_item_short,
    group_layers_out_of_range,
    layer_in_two_groups,
    layer_item_short,
    tile_block_shared,
    tilemap_version,
    several_physics_flags,
    physics_index_missing,
    tile_block_missing,
    layer_name_not_utf8,
    layer_color,
    game_layer_too_small,
    tile_layer_too_small,
    layer_dimensions,
    physics_layer_too_small,
    physics_layer_differs,
    physics_layer_twice,
    physics_data_unusable,
    physics_layer_packed,
    packed_entries_left,
    packed_run_cut,
    packed_reserved_set,
    skip_bytes_set,
};

struct WarningInfo {
    WarningId id;
    std::string_view name;
    std::string_view sentence;
    bool strict; ///< DDNet master rejects maps with this warning
};

[[nodiscard]] std::span<const WarningInfo> warning_table();
[[nodiscard]] const WarningInfo& warning_info(WarningId id);

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
    void add(WarningId id, std::uint64_t where = 0);

    [[nodiscard]] std::span<const Warning> list() const { return list_; }

    [[nodiscard]] bool contains(WarningId id) const;
    /// Returns the first warning for which DDNet master rejects the file, or nullopt.
    [[nodiscard]] std::optional<WarningId> first_strict() const;

  private:
    std::vector<Warning> list_;
};

} // namespace tw::map
