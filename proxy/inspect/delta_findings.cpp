#include "proxy/inspect/delta_findings.h"

#include <algorithm>

namespace tw::inspect {

namespace {

/// The part of a body that holds this byte, and where in it.
struct InPart {
    int part = 0;
    std::size_t offset = 0;
    std::span<const std::byte> bytes;
};

InPart locate_in_parts(std::span<const std::byte> body, std::size_t offset) {
    const std::size_t at = std::min(offset, body.empty() ? 0 : body.size() - 1);
    const std::size_t begin = at / snapshot::kMaxPartSize * snapshot::kMaxPartSize;
    return {.part = static_cast<int>(begin / snapshot::kMaxPartSize),
            .offset = offset - begin,
            .bytes = body.subspan(begin, std::min(snapshot::kMaxPartSize, body.size() - begin))};
}

} // namespace

record::FindingItem name_item(const record::TypeNames& types, snapshot::ItemKey key) {
    const snapshot::ObjectSpec* object = types.object(key.type);
    return {.type_id = key.type,
            .id = key.id,
            .type = object == nullptr ? std::string_view{} : object->name};
}

record::FindingRecord decode_finding(const snapshot::DecodeError& error,
                                     std::span<const std::byte> body,
                                     const record::TypeNames& types) {
    const std::size_t offset = error.code == snapshot::DecodeErrc::truncated
                                   ? error.offset
                                   : snapshot::byte_offset_of_int(body, error.offset);
    const InPart at = locate_in_parts(body, offset);
    const snapshot::ErrorInfo& info = snapshot::error_info(error.code);
    record::FindingRecord finding{.id = record::finding_of(error.code),
                                  .offset = at.offset,
                                  .part = at.part,
                                  .name = info.name,
                                  .detail = info.sentence,
                                  .bytes = at.bytes};
    if (const int code = error.ddnet_code != 0 ? error.ddnet_code : info.ddnet_code; code != 0) {
        finding.ddnet_code = code;
    }
    if (error.key) {
        finding.item = name_item(types, *error.key);
    }
    return finding;
}

record::FindingRecord checksum_finding(const Mismatch& mismatch, const record::TypeNames& types) {
    const MismatchCause cause = explain_mismatch(mismatch);
    const std::size_t offset =
        cause.int_index ? snapshot::byte_offset_of_int(mismatch.body, *cause.int_index) : 0;
    const InPart at = locate_in_parts(mismatch.body, offset);
    record::FindingRecord finding{.id = record::FindingId::snapshot_crc_mismatch,
                                  .value = std::int64_t{mismatch.got} - mismatch.wanted,
                                  .part = at.part,
                                  .name = cause.name,
                                  .detail = cause.sentence,
                                  .bytes = at.bytes};
    if (cause.int_index) {
        finding.offset = at.offset;
    }
    if (cause.key) {
        finding.item = name_item(types, *cause.key);
    }
    return finding;
}

void report_warnings(const snapshot::AssembledDelta& delta, const snapshot::DeltaWarnings& warnings,
                     const record::TypeNames& types, Reporter& reporter) {
    for (const snapshot::DeltaWarningAt& warning : warnings.list()) {
        const InPart at = locate_in_parts(
            delta.body, snapshot::byte_offset_of_int(delta.body, warning.int_index));
        reporter.finding({.id = record::finding_of(warning.kind),
                          .tick = delta.tick,
                          .offset = at.offset,
                          .item = name_item(types, warning.key),
                          .delta_tick = delta.delta_tick,
                          .part = at.part});
    }
}

void report_lost(std::span<const snapshot::LostDelta> lost, Reporter& reporter) {
    for (const snapshot::LostDelta& delta : lost) {
        ++reporter.stats.incomplete;
        reporter.finding({.id = record::FindingId::snapshot_part_missing,
                          .tick = delta.tick,
                          .delta_tick = delta.delta_tick,
                          .value = delta.have,
                          .limit = delta.num_parts,
                          .part = delta.first_missing});
    }
}

} // namespace tw::inspect
