#include "proxy/inspect/diagnosis/diagnosis.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tw::inspect {

namespace {

using snapshot::DeltaUpdate;
using snapshot::DeltaWarningAt;
using snapshot::ItemKey;

/// Returns the wrapping sum of an item's ints after only this update is applied to the base.
std::uint32_t sum_after_update(const CrcMismatch& mismatch, const DeltaUpdate& update) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < update.size; ++i) {
        sum += static_cast<std::uint32_t>(mismatch.rebuilt.delta.ints[update.begin + i]);
    }
    if (const auto index = mismatch.rebuilt.base.find(update.key)) {
        for (const std::int32_t value : mismatch.rebuilt.base[*index].data) {
            sum += static_cast<std::uint32_t>(value);
        }
    }
    return sum;
}

/// Returns an update of the item that a later update replaced, if this explains the checksum's
/// error; otherwise null.
const DeltaUpdate* find_overwritten_update(const CrcMismatch& mismatch, ItemKey key) {
    const auto missing = static_cast<std::uint32_t>(mismatch.delta.crc) -
                         static_cast<std::uint32_t>(mismatch.rebuilt.crc);
    const auto& updates = mismatch.rebuilt.delta.updates;
    const auto found = std::ranges::find_if(updates, [&](const DeltaUpdate& each) {
        return each.key == key && sum_after_update(mismatch, each) == missing;
    });
    return found == updates.end() ? nullptr : &*found;
}

void add_key_if_new(ItemKey key, std::vector<ItemKey>& keys) {
    if (std::ranges::find(keys, key) == keys.end()) {
        keys.push_back(key);
    }
}

/// Adds the items as candidates to a cause.
MismatchCause add_candidate_items(MismatchCause cause, std::span<const ItemKey> items,
                                  const record::ItemTypes& types) {
    cause.candidates.count = items.size();
    for (const ItemKey key :
         items.first(std::min(items.size(), NamedCauseCandidates::kMaxListed))) {
        cause.candidates.listed.push_back({.item = make_finding_item(types, key)});
    }
    return cause;
}

MismatchCause explain_by_delta_warnings(const CrcMismatch& mismatch) {
    const snapshot::DeltaWarnings& warnings = mismatch.rebuilt.warnings;
    std::vector<ItemKey> lost;
    std::vector<ItemKey> odd;
    for (const DeltaWarningAt& warning : warnings.list()) {
        add_key_if_new(warning.key, odd);
        if (warning.kind == snapshot::DeltaWarning::duplicate_update &&
            find_overwritten_update(mismatch, warning.key) != nullptr) {
            add_key_if_new(warning.key, lost);
        }
    }
    const bool all_are_listed = warnings.count == warnings.list().size();
    if (lost.size() == 1 && all_are_listed) {
        return {.name = "duplicate_update",
                .sentence = "the server's snapshot contained this item twice; the sum of the lost "
                            "one is exactly the difference",
                .item_key = lost.front(),
                .index_in_delta = find_overwritten_update(mismatch, lost.front())->begin};
    }
    if (!lost.empty()) {
        return add_candidate_items({.name = "duplicate_update",
                                    .sentence =
                                        "the server's snapshot contained items twice; the sum "
                                        "of any of these, lost, is exactly the difference"},
                                   lost, mismatch.types);
    }
    return add_candidate_items({.name = "odd_delta",
                                .sentence = "the delta treats these items oddly, which may be the "
                                            "cause; see the earlier findings"},
                               odd, mismatch.types);
}

/// Explains a mismatch for which no value of the delta was examined.
MismatchCause explain_without_suspects(const CrcMismatch& mismatch) {
    const auto& updates = mismatch.rebuilt.delta.updates;
    const std::size_t values =
        std::accumulate(updates.begin(), updates.end(), std::size_t{0},
                        [](std::size_t sum, const DeltaUpdate& each) { return sum + each.size; });
    if (values > SuspectValues::kMaxValues) {
        return {.name = "unknown",
                .sentence =
                    "the delta holds " + std::to_string(values) + " values, too many to examine"};
    }
    if (values != 0) {
        return {.name = "unknown",
                .sentence = "the values were not examined, because too many snapshots were wrong "
                            "at once"};
    }
    if (differ_by_one_bit(mismatch.delta.crc, mismatch.rebuilt.crc)) {
        return {.name = "damaged_checksum",
                .sentence =
                    "the delta changes no value, so no item's value can be wrong; the announced "
                    "checksum differs by one flipped bit from the one rebuilt here: "
                    "probably the header of the snapshot message is damaged"};
    }
    return {.name = "unknown",
            .sentence =
                "the delta changes no value, so no item's value can be wrong: the deleted items, "
                "the base or the announced checksum are"};
}

/// Returns the end of a sentence that names causes of a mismatch other than a flipped bit.
std::string describe_other_causes(const CrcMismatch& mismatch) {
    const std::size_t items = mismatch.rebuilt.delta.updates.size();
    return "; if the server changed a value after it built the snapshot, any value of the " +
           (items == 1 ? "updated item" : std::to_string(items) + " updated items") + " fits";
}

} // namespace

MismatchCause explain_mismatch(const CrcMismatch& mismatch,
                               std::vector<SuspectValues::Suspect> suspects) {
    using Suspect = SuspectValues::Suspect;
    if (mismatch.rebuilt.warnings.count != 0) {
        return explain_by_delta_warnings(mismatch);
    }
    if (suspects.empty()) {
        return explain_without_suspects(mismatch);
    }
    std::erase_if(suspects, [](const Suspect& each) { return !each.differs_by_one_bit; });
    const bool may_be_checksum = differ_by_one_bit(mismatch.delta.crc, mismatch.rebuilt.crc);
    if (suspects.empty()) {
        return {.name = "unknown",
                .sentence =
                    std::string{"no single flipped bit in a value explains the difference"} +
                    (may_be_checksum ? ", but one in the announced checksum does" : "") +
                    describe_other_causes(mismatch)};
    }
    const Suspect& likeliest = suspects.front();
    constexpr double kLikely = 0.5;
    if ((suspects.size() == 1 || likeliest.is_overlong_varint) && likeliest.probability > kLikely) {
        return {.name = "damaged_value",
                .sentence = likeliest.is_overlong_varint
                                ? "this value takes more bytes than any server writes, and one "
                                  "flipped bit in it explains the difference"
                                : "one flipped bit in this value explains the difference, and in "
                                  "no other value",
                .item_key = likeliest.key,
                .index_in_delta = likeliest.index_in_delta,
                .field_name = name_of_int(mismatch.types.object(likeliest.key.type),
                                          likeliest.index_in_item)};
    }
    return {.name = "ambiguous",
            .sentence =
                std::string{suspects.size() == 1
                                ? "one flipped bit explains the difference in one value only"
                                : "one flipped bit in any of the candidates explains the "
                                  "difference"} +
                (may_be_checksum ? ", or one in the announced checksum" : "") +
                describe_other_causes(mismatch),
            .index_in_delta = likeliest.index_in_delta,
            .candidates = make_named_cause_candidates(suspects, mismatch.types)};
}

namespace {

/// The position of a byte in a delta's body: the number of its part, and the offset in the part.
struct PartPosition {
    int part = 0;
    std::size_t offset = 0;
    std::span<const std::byte> bytes;
};

PartPosition find_part_position(std::span<const std::byte> body, std::size_t offset) {
    const std::size_t at = std::min(offset, body.empty() ? 0 : body.size() - 1);
    const std::size_t begin = at / snapshot::kMaxPartSize * snapshot::kMaxPartSize;
    return {.part = static_cast<int>(begin / snapshot::kMaxPartSize),
            .offset = offset - begin,
            .bytes = body.subspan(begin, std::min(snapshot::kMaxPartSize, body.size() - begin))};
}

} // namespace

record::FindingItem make_finding_item(const record::ItemTypes& types, snapshot::ItemKey key) {
    const snapshot::ObjectSpec* object = types.object(key.type);
    return {.type_id = key.type,
            .id = key.id,
            .type = object == nullptr ? std::string_view{} : object->name};
}

record::FindingRecord make_decode_error_finding(const snapshot::DecodeError& error,
                                                std::span<const std::byte> body,
                                                const record::ItemTypes& types) {
    const std::size_t offset = error.code == snapshot::DecodeErrc::truncated
                                   ? error.offset
                                   : snapshot::IntOffsets{body}.byte_offset(error.offset);
    const PartPosition at = find_part_position(body, offset);
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
        finding.item = make_finding_item(types, *error.key);
    }
    return finding;
}

void add_position_of_int(record::FindingRecord& finding, std::span<const std::byte> body,
                         std::size_t int_index) {
    const PartPosition at =
        find_part_position(body, snapshot::IntOffsets{body}.byte_offset(int_index));
    finding.offset = at.offset;
    finding.part = at.part;
    finding.bytes = at.bytes;
}

NamedCauseCandidates make_named_cause_candidates(std::span<const SuspectValues::Suspect> values,
                                                 const record::ItemTypes& types) {
    NamedCauseCandidates candidates{.count = values.size()};
    candidates.field_names.reserve(
        NamedCauseCandidates::kMaxListed); // `listed` refers to the names, so they must not move
    for (const auto& value :
         values.first(std::min(values.size(), NamedCauseCandidates::kMaxListed))) {
        candidates.listed.push_back({.item = make_finding_item(types, value.key),
                                     .field = candidates.field_names.emplace_back(name_of_int(
                                         types.object(value.key.type), value.index_in_item)),
                                     .value = value.received,
                                     .expected = value.expected});
    }
    return candidates;
}

record::FindingRecord make_checksum_finding(const CrcMismatch& mismatch,
                                            const MismatchCause& cause) {
    record::FindingRecord finding{.id = record::FindingId::snapshot_crc_mismatch,
                                  .value = std::int64_t{mismatch.rebuilt.crc} - mismatch.delta.crc,
                                  .name = cause.name,
                                  .detail = cause.sentence};
    add_position_of_int(finding, mismatch.delta.body, cause.index_in_delta.value_or(0));
    if (!cause.index_in_delta) {
        finding.offset.reset();
    }
    if (cause.item_key) {
        finding.item = make_finding_item(mismatch.types, *cause.item_key);
        finding.field = cause.field_name;
    }
    if (cause.candidates.count != 0) {
        finding.candidates =
            record::CauseCandidateSummary{cause.candidates.count, cause.candidates.listed};
    }
    return finding;
}

void report_delta_warnings(const snapshot::AssembledDelta& delta,
                           const snapshot::DeltaWarnings& warnings, const record::ItemTypes& types,
                           Reporter& reporter) {
    for (const snapshot::DeltaWarningAt& warning : warnings.list()) {
        const PartPosition at = find_part_position(
            delta.body, snapshot::IntOffsets{delta.body}.byte_offset(warning.int_index));
        reporter.report_finding({.id = record::finding_of(warning.kind),
                                 .tick = delta.tick,
                                 .offset = at.offset,
                                 .item = make_finding_item(types, warning.key),
                                 .delta_tick = delta.delta_tick,
                                 .part = at.part});
    }
}

void report_lost_deltas(std::span<const snapshot::LostDelta> lost, Reporter& reporter) {
    for (const snapshot::LostDelta& delta : lost) {
        ++reporter.stats.incomplete;
        reporter.report_finding({.id = record::FindingId::snapshot_part_missing,
                                 .tick = delta.tick,
                                 .delta_tick = delta.delta_tick,
                                 .value = delta.num_received,
                                 .limit = delta.num_parts,
                                 .part = delta.first_missing});
    }
}

void rebuild_snapshot(const snapshot::AssembledDelta& delta, const snapshot::AgreedSizes& sizes,
                      snapshot::History& history, RebuiltSnapshot& rebuilt) {
    rebuilt.warnings.count = 0;
    const auto base = delta.delta_tick == snapshot::kNoBase ? snapshot::SnapshotView{}
                                                            : history.find(delta.delta_tick);
    if (!base) {
        rebuilt.outcome = DeltaOutcome::unknown_base;
        return;
    }
    rebuilt.base = *base;
    rebuilt.outcome = DeltaOutcome::undecodable;
    if (const auto read = snapshot::decode_delta(delta.body, rebuilt.delta, sizes); !read) {
        rebuilt.error = read.error();
        return;
    }
    // The result is in reserved memory of the history. The caller adds it to the history if its
    // checksum is right.
    const auto built =
        snapshot::apply_delta(rebuilt.base, rebuilt.delta, history, rebuilt.warnings);
    if (!built) {
        rebuilt.error = built.error();
        return;
    }
    rebuilt.result = *built;
    rebuilt.crc = built->checksum();
    rebuilt.outcome = rebuilt.crc == delta.crc ? DeltaOutcome::accepted : DeltaOutcome::mismatched;
}

bool equals_base_in_all_items(const RebuiltSnapshot& rebuilt) {
    for (const DeltaUpdate& update : rebuilt.delta.updates) {
        const auto ints = std::span{rebuilt.delta.ints}.subspan(update.begin, update.size);
        if (std::ranges::any_of(ints, [](std::int32_t value) { return value != 0; })) {
            return false;
        }
    }
    return rebuilt.base == rebuilt.result;
}

namespace {

/// Whether the body is truncated or has too many ints. Other item sizes cannot explain that.
bool is_length_error(const snapshot::DecodeError& error) {
    return error.code == snapshot::DecodeErrc::truncated ||
           error.code == snapshot::DecodeErrc::too_many_ints;
}

} // namespace

bool SnapshotDiagnosis::explain_by_item_sizes(const snapshot::AssembledDelta& delta,
                                              const snapshot::History& history,
                                              std::optional<snapshot::Tick> verified,
                                              SnapshotWorkspace& workspace, Reporter& reporter) {
    RebuiltSnapshot& rebuilt = workspace.rebuilt;
    if (rebuilt.outcome == DeltaOutcome::unknown_base) {
        if (!size_learner_ || !may_learn_sizes_ ||
            !size_learner_->is_snapshot_undecided(delta.delta_tick)) {
            return false;
        }
        const auto read = snapshot::decode_delta(delta.body, rebuilt.delta, *agreed_sizes_);
        return (read || !is_length_error(read.error())) &&
               size_learner_->on_delta_with_undecided_base(rebuilt.delta.ints, delta.delta_tick,
                                                           delta.tick, delta.crc);
    }
    if (rebuilt.outcome == DeltaOutcome::undecodable && is_length_error(rebuilt.error)) {
        return false;
    }
    if (!size_learner_) {
        size_learner_ = std::make_unique<SizeLearner>(*types_, shared_sizes_);
    }
    const auto right = verified ? history.find(*verified) : std::nullopt;
    return size_learner_->on_misfit_delta(
        {.delta = {.ints = rebuilt.delta.ints, .base = rebuilt.base, .crc = delta.crc},
         .tick = delta.tick,
         .newest_verified = right.value_or(snapshot::SnapshotView{})},
        reporter, workspace.search_budget);
}

// If `size_learner_` is null, the caller has already tried the agreed sizes.
void SnapshotDiagnosis::search_item_sizes(const snapshot::AssembledDelta& delta,
                                          snapshot::History& history,
                                          std::optional<snapshot::Tick> verified,
                                          SnapshotWorkspace& workspace, Reporter& reporter) {
    RebuiltSnapshot& rebuilt = workspace.rebuilt;
    if (size_learner_) {
        inspect::rebuild_snapshot(
            delta, may_learn_sizes_ ? size_learner_->decoding_sizes() : *agreed_sizes_, history,
            rebuilt);
        if (rebuilt.outcome == DeltaOutcome::accepted && rebuilt.delta.surplus_ints == 0) {
            if (may_learn_sizes_) {
                size_learner_->on_verified_delta(rebuilt.delta, rebuilt.result, delta.tick,
                                                 reporter);
            }
            return;
        }
    }
    if (explain_by_item_sizes(delta, history, verified, workspace, reporter) && may_learn_sizes_) {
        size_learner_->add_undecided_snapshots_to(history);
        inspect::rebuild_snapshot(delta, size_learner_->decoding_sizes(), history, rebuilt);
    }
}

MismatchCause SnapshotDiagnosis::on_mismatch(const CrcMismatch& mismatch, SearchBudget& searches,
                                             Reporter& reporter) {
    report_suspects(reporter);
    searches.begin_search(reporter.head().time);
    auto suspects = std::make_unique<SuspectValues>(mismatch, searches);
    searches.end_search();
    MismatchCause cause = explain_mismatch(mismatch, suspects->rank_suspects());
    // SuspectValues assumes a single wrong value. A delta with warnings has several errors.
    if (mismatch.rebuilt.warnings.count == 0 && !suspects->empty()) {
        suspect_values_ = std::move(suspects);
    }
    return cause;
}

} // namespace tw::inspect
