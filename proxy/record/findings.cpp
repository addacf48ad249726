#include "proxy/record/findings.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

namespace tw::record {

namespace {

using enum FindingId;
using enum Severity;

constexpr auto kFindingTable = std::to_array<FindingInfo>({
#define TW_FINDING(id, name, severity, sentence, cause) {id, name, severity, sentence, cause},
#include "proxy/record/finding_list.h"
#undef TW_FINDING
});

constexpr std::array<std::string_view, 3> kSeverityNames{"info", "warning", "error"};

} // namespace

std::span<const FindingInfo> finding_table() {
    return kFindingTable;
}

const FindingInfo& finding_info(FindingId id) {
    return kFindingTable[static_cast<std::size_t>(id)];
}

std::span<const FindingId> findings_by_importance() {
    static constexpr auto kOrder = [] {
        std::array<FindingId, kFindingCount> order{};
        std::ranges::transform(kFindingTable, order.begin(), &FindingInfo::id);
        std::ranges::sort(order, {}, [](FindingId id) {
            const auto at = static_cast<std::size_t>(id);
            return std::tuple{id != snapshot_size_differs,
                              -static_cast<int>(kFindingTable[at].severity), at};
        });
        return order;
    }();
    return kOrder;
}

std::optional<FindingId> find_finding(std::string_view name) {
    const auto* row = std::ranges::find_if(
        kFindingTable, [&](const FindingInfo& info) { return info.name == name; });
    return row == kFindingTable.end() ? std::nullopt : std::optional{row->id};
}

std::string_view finding_display_name(std::string_view id, std::string_view name) {
    constexpr std::string_view kMaps = "map."; // in these findings, `name` is the name of a map
    if (!id.starts_with(kMaps) && id.substr(id.find('.') + 1) == name) {
        return {};
    }
    return id == finding_info(snapshot_crc_mismatch).name && name == "unknown"
               ? "wrong value unknown"
               : name;
}

std::string_view severity_name(Severity severity) {
    return kSeverityNames[static_cast<std::size_t>(severity)];
}

std::optional<Severity> parse_severity(std::string_view name) {
    const auto* found = std::ranges::find(kSeverityNames, name);
    if (found == kSeverityNames.end()) {
        return std::nullopt;
    }
    return static_cast<Severity>(found - kSeverityNames.begin());
}

FindingId finding_of(wire::WireErrc code) {
    constexpr std::array kFindings{
        message_id_invalid,      packet_too_short,     packet_too_long, packet_huffman_truncated,
        packet_huffman_overflow, packet_control_empty, chunk_truncated, message_id_invalid};
    static_assert(kFindings.size() == wire::kErrorTable.size());
    return kFindings[static_cast<std::size_t>(code)];
}

FindingId finding_of(snapshot::DecodeErrc code) {
    const std::string name = "snapshot." + std::string{snapshot::error_info(code).name};
    return find_finding(name).value_or(snapshot_body_truncated);
}

FindingId finding_of(snapshot::DeltaWarning warning) {
    constexpr std::array kFindings{snapshot_duplicate_update, snapshot_unknown_delete,
                                   snapshot_duplicate_delete, snapshot_deleted_and_updated};
    return kFindings[static_cast<std::size_t>(warning)];
}

} // namespace tw::record
