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

/// All kinds of findings; see finding_list.h.
enum class FindingId : std::uint8_t {
#define TW_FINDING(id, ...) id,
#include "proxy/record/finding_list.h"
#undef TW_FINDING
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
/// Returns all kinds of findings in the order in which people should read them: first
/// snapshot.size_differs, because it explains other findings, then errors, warnings and
/// information.
[[nodiscard]] std::span<const FindingId> findings_by_importance();
[[nodiscard]] std::string_view severity_name(Severity severity);
/// Returns a finding's `name` for texts that people read; empty if the name only repeats the id.
[[nodiscard]] std::string_view finding_display_name(std::string_view id, std::string_view name);
[[nodiscard]] std::optional<Severity> parse_severity(std::string_view name);

/// Returns the kind of finding that reports the given error or warning about a datagram.
[[nodiscard]] FindingId finding_of(wire::WireErrc code);
[[nodiscard]] FindingId finding_of(snapshot::DecodeErrc code);
[[nodiscard]] FindingId finding_of(snapshot::DeltaWarning warning);

} // namespace tw::record
