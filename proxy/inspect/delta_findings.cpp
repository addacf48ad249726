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

void point_at_int(record::FindingRecord& finding, std::span<const std::byte> body,
                  std::size_t int_index) {
    const InPart at = locate_in_parts(body, snapshot::byte_offset_of_int(body, int_index));
    finding.offset = at.offset;
    finding.part = at.part;
    finding.bytes = at.bytes;
}

Candidates::Candidates(std::span<const Suspects::Suspect> values, const record::TypeNames& types)
    : count_{values.size()} {
    for (std::size_t i = 0; i < std::min(values.size(), kMaxListed); ++i) {
        fields_[i] = field_name(types.object(values[i].key.type), values[i].index);
        listed_.push_back({.item = name_item(types, values[i].key),
                           .field = fields_[i],
                           .value = values[i].got,
                           .expected = values[i].expected});
    }
}

Candidates::Candidates(const MismatchCause& cause, const record::TypeNames& types)
    : Candidates{std::span{cause.damaged}, types} {
    count_ += cause.odd_items.size();
    for (std::size_t i = 0; i < std::min(cause.odd_items.size(), kMaxListed); ++i) {
        listed_.push_back({.item = name_item(types, cause.odd_items[i])});
    }
}

std::optional<record::CandidateList> Candidates::list() const {
    return count_ == 0
               ? std::nullopt
               : std::optional{record::CandidateList{.count = count_, .likeliest = listed_}};
}

record::FindingRecord checksum_finding(const Mismatch& mismatch, const MismatchCause& cause) {
    record::FindingRecord finding{.id = record::FindingId::snapshot_crc_mismatch,
                                  .value = std::int64_t{mismatch.got} - mismatch.wanted,
                                  .name = cause.name,
                                  .detail = cause.sentence};
    point_at_int(finding, mismatch.body, cause.int_index.value_or(0));
    if (!cause.int_index) {
        finding.offset.reset();
    }
    if (cause.key) {
        finding.item = name_item(*mismatch.types, *cause.key);
        finding.field = cause.field;
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
