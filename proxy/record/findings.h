#pragma once

#include "proxy/wire/error.h"
#include "snapshot/delta.h"
#include "snapshot/error.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::record {

enum class Severity : std::uint8_t {
    info,    ///< harmless, for example a packet that was lost and resent
    warning, ///< possibly harmful: data is missing or a limit is near
    error,   ///< a client or server receives data that it cannot use
};

/// All kinds of findings. If a kind is removed, its number is never reused.
enum class FindingId : std::uint8_t {
    packet_too_short,
    packet_too_long,
    packet_huffman_truncated,
    packet_huffman_overflow,
    packet_control_empty,
    packet_control_compressed,
    packet_control_unknown,
    packet_wrong_token,
    packet_trailing_bytes,
    packet_seven,
    chunk_truncated,
    chunk_empty,
    chunk_vital_gap,
    message_id_invalid,
    message_unknown,
    message_truncated,
    message_trailing_bytes,
    message_out_of_range,
    snapshot_crc_mismatch,
    snapshot_unknown_base,
    snapshot_body_truncated,
    snapshot_too_many_ints,
    snapshot_negative_count,
    snapshot_deleted_out_of_range,
    snapshot_update_truncated,
    snapshot_type_out_of_range,
    snapshot_id_out_of_range,
    snapshot_size_out_of_range,
    snapshot_size_change,
    snapshot_too_many_items,
    snapshot_too_many_bytes,
    snapshot_duplicate_update,
    snapshot_unknown_delete,
    snapshot_duplicate_delete,
    snapshot_deleted_and_updated,
    snapshot_surplus_ints,
    snapshot_negative_base,
    snapshot_item_cap,
    snapshot_part_missing,
    snapshot_part_out_of_range,
    snapshot_part_inconsistent,
    snapshot_missing_descriptor,
    map_not_found,
    map_crc_mismatch,
    map_unreadable,
    map_name_invalid,
    map_not_cached,
    world_inside_solid,
    world_outside_map,
    session_joined_midway,
    session_reconnected,
    session_closed_silently,
    session_antispoof,
    inspect_gap,
    snapshot_tick_jump,
    packet_not_accepted,
    message_unexpected,
    snapshot_leftover,
    session_server_silent,
    snapshot_size_differs,
    snapshot_explained,
    snapshot_client_stalled,
    snapshot_budget,
    demo_damaged,
    demo_cut_short,
    demo_snapshot_invalid,
    demo_duplicate_item,
    session_resync,
    world_views_differ,
    world_vanished,
    world_late,
    demo_tick_order,
    world_stray,
    world_per_viewer,
    snapshot_unknown_type,
    message_version_unknown,
    packet_undecided,
    session_one_direction,
    session_messages_left_out,
    session_unanswered,
    count,
};

inline constexpr std::size_t kFindingCount = static_cast<std::size_t>(FindingId::count);

/// The human-readable description of a finding.
struct FindingInfo {
    FindingId id;
    std::string_view name; ///< for example "snapshot.crc_mismatch"
    Severity severity;
    std::string_view sentence; ///< what the finding means, in one sentence
    std::string_view cause;
};

/// Returns the descriptions of all kinds of findings, in the order of FindingId.
[[nodiscard]] std::span<const FindingInfo> finding_table();

[[nodiscard]] const FindingInfo& finding_info(FindingId id);
[[nodiscard]] std::optional<FindingId> find_finding(std::string_view name);
/// Returns all kinds of findings, sorted for people: first snapshot.explained, which names the
/// cause of other findings, then errors, warnings and information.
[[nodiscard]] std::span<const FindingId> findings_by_importance();
[[nodiscard]] std::string_view severity_name(Severity severity);
/// Returns a finding's `name` for texts that people read; empty if the name only repeats the id.
[[nodiscard]] std::string_view shown_name(std::string_view id, std::string_view name);
[[nodiscard]] std::optional<Severity> find_severity(std::string_view name);

/// Returns the kind of finding that reports the given error or warning about a datagram.
[[nodiscard]] FindingId finding_of(wire::WireErrc code);
[[nodiscard]] FindingId finding_of(snapshot::DecodeErrc code);
[[nodiscard]] FindingId finding_of(snapshot::DeltaWarning warning);

} // namespace tw::record
