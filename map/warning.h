#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::map {

/// What is unusual about a map that can be used all the same. A closed set; `warning_info` explains
/// each and says whether DDNet master rejects a file for it.
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
    bool strict; ///< DDNet master rejects the file for it
};

[[nodiscard]] std::span<const WarningInfo> warning_table();
[[nodiscard]] const WarningInfo& warning_info(WarningId id);

/// One kind of warning: where it was met first and how often.
struct Warning {
    WarningId id;
    std::uint32_t where; ///< index of the item type, item, layer or block concerned; 0 for the file
    std::uint32_t count;

    friend bool operator==(const Warning&, const Warning&) = default;
};

/// What was odd, one entry a kind, so that a hostile file cannot make the list grow.
class Warnings {
  public:
    void add(WarningId id, std::uint64_t where = 0);

    [[nodiscard]] std::span<const Warning> list() const { return list_; }

    [[nodiscard]] bool contains(WarningId id) const;
    /// The first kind DDNet master rejects the file for.
    [[nodiscard]] std::optional<WarningId> first_strict() const;

  private:
    std::vector<Warning> list_;
};

} // namespace tw::map
