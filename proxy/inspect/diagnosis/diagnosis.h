#pragma once

#include "proxy/inspect/diagnosis/size_learner.h"
#include "proxy/inspect/diagnosis/suspect_values.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "snapshot/delta.h"
#include "snapshot/error.h"
#include "snapshot/history.h"
#include "snapshot/parts.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::inspect {

/// The most likely causes of a wrong checksum, with their names, for a finding. Can be moved, but
/// not copied: a copy of `listed` refers to the original's names.
struct NamedCauseCandidates {
    /// The most candidates in `listed`. Further candidates are only counted.
    static constexpr std::size_t kMaxListed = 5;

    std::size_t count = 0;
    std::vector<std::string> field_names{};       ///< the field names in `listed`
    std::vector<record::CauseCandidate> listed{}; ///< the likeliest candidates, likeliest first
};

/// The cause of a snapshot's wrong checksum, as far as it is known.
struct MismatchCause {
    /// The cause's name in records: "duplicate_update", "odd_delta", "damaged_value",
    /// "damaged_checksum", "ambiguous" or "unknown".
    std::string_view name{};
    std::string sentence{}; ///< the cause as a sentence for users
    /// The item that caused the wrong checksum; nullopt if several causes are possible.
    std::optional<snapshot::ItemKey> item_key{};
    /// The index in the delta's ints of the value that is most likely wrong, or of the first int of
    /// the item's update.
    std::optional<std::size_t> index_in_delta{};
    std::string field_name{}; ///< the field of the wrong value, if a single value is the cause
    /// The items or values that may have caused the mismatch; empty if the cause is known.
    NamedCauseCandidates candidates{};
};

/// Searches for a cause that explains the wrong checksum exactly: a second update of an item, or
/// one flipped bit in one value of the delta. `suspects`: the delta's values, most likely cause
/// first.
[[nodiscard]] MismatchCause explain_mismatch(const CrcMismatch& mismatch,
                                             std::vector<SuspectValues::Suspect> suspects);

/// Returns an item's key with the name of its type, for a finding. The name is empty if the type is
/// unknown, for example because the descriptor item with its UUID was not seen yet.
[[nodiscard]] record::FindingItem make_finding_item(const record::ItemTypes& types,
                                                    snapshot::ItemKey key);

/// Returns the finding for a delta that cannot be decoded or applied. The finding's bytes point
/// into `body`, the delta's body.
[[nodiscard]] record::FindingRecord make_decode_error_finding(const snapshot::DecodeError& error,
                                                              std::span<const std::byte> body,
                                                              const record::ItemTypes& types);

/// Adds the position of one of the delta's ints to a finding: the part, the int's offset in the
/// part, and the bytes from that offset.
void add_position_of_int(record::FindingRecord& finding, std::span<const std::byte> body,
                         std::size_t int_index);

/// Returns the values with their names. `values`: the values that may be wrong, most likely first.
[[nodiscard]] NamedCauseCandidates
make_named_cause_candidates(std::span<const SuspectValues::Suspect> values,
                            const record::ItemTypes& types);

/// Returns the finding for a wrong checksum. The finding refers to `cause`, so it must not outlive
/// `cause`. Its bytes point to the delta's value that is wrong or most likely wrong.
[[nodiscard]] record::FindingRecord make_checksum_finding(const CrcMismatch& mismatch,
                                                          const MismatchCause& cause);

void report_delta_warnings(const snapshot::AssembledDelta& delta,
                           const snapshot::DeltaWarnings& warnings, const record::ItemTypes& types,
                           Reporter& reporter);

/// Counts and reports deltas of which at least one part was lost.
void report_lost_deltas(std::span<const snapshot::LostDelta> lost, Reporter& reporter);

/// Rebuilds the snapshot of a delta. The snapshot uses memory of the history, but is not added to
/// the history.
void rebuild_snapshot(const snapshot::AssembledDelta& delta, const snapshot::AgreedSizes& sizes,
                      snapshot::History& history, RebuiltSnapshot& rebuilt);

/// Whether the rebuilt snapshot equals its base. Examines all items; equals_base() is faster.
[[nodiscard]] bool equals_base_in_all_items(const RebuiltSnapshot& rebuilt);

/// Whether the rebuilt snapshot equals its base. In most deltas, the first int already shows that
/// the snapshot differs.
[[nodiscard]] inline bool equals_base(const RebuiltSnapshot& rebuilt) {
    const snapshot::Delta& delta = rebuilt.delta;
    if (!delta.updates.empty()) {
        const snapshot::DeltaUpdate& first = delta.updates.front();
        if (first.size != 0 && delta.ints[first.begin] != 0) [[likely]] {
            return false;
        }
    }
    return equals_base_in_all_items(rebuilt);
}

/// Buffers for decoding a snapshot, shared by all sessions of a worker.
struct SnapshotWorkspace {
    RebuiltSnapshot rebuilt;
    SearchBudget search_budget;
};

/// Explains why snapshots of a connection cannot be decoded or verified. As long as all snapshots
/// are verified, this takes hardly any memory or time.
class SnapshotDiagnosis {
  public:
    /// `types`: the item types of the connection, with the agreed item sizes of its dialect.
    /// `learn`: whether to decode with other sizes that the server's deltas show. `shared`: the
    /// sizes that sessions of the server learned; null if sessions share no sizes. `types`, their
    /// objects and `shared` must outlive this object.
    SnapshotDiagnosis(const record::ItemTypes& types, bool learn,
                      LearnedSizeTable::ServerSizes* shared)
        : types_{&types}, agreed_sizes_{&types.objects().sizes(types.dialect())},
          may_learn_sizes_{learn}, shared_sizes_{shared} {}

    /// Rebuilds a snapshot. If the known item sizes do not fit the delta, searches for other sizes.
    /// `verified`: the tick of the newest verified snapshot.
    void rebuild_snapshot(const snapshot::AssembledDelta& delta, snapshot::History& history,
                          std::optional<snapshot::Tick> verified, SnapshotWorkspace& workspace,
                          Reporter& reporter) {
        if (size_learner_ == nullptr) [[likely]] {
            RebuiltSnapshot& rebuilt = workspace.rebuilt;
            inspect::rebuild_snapshot(delta, *agreed_sizes_, history, rebuilt);
            if (rebuilt.outcome == DeltaOutcome::accepted && rebuilt.delta.surplus_ints == 0)
                [[likely]] {
                return;
            }
        }
        search_item_sizes(delta, history, verified, workspace, reporter);
    }

    /// Called when an empty snapshot of `tick` arrived whose base is not in the history.
    void on_empty_snapshot(snapshot::Tick base, snapshot::Tick tick) {
        if (size_learner_ && may_learn_sizes_) {
            size_learner_->on_empty_snapshot(base, tick);
        }
    }

    /// Returns the cause of a wrong checksum, as far as it is known now. If later verified
    /// snapshots show the cause, a finding reports it then.
    [[nodiscard]] MismatchCause on_mismatch(const CrcMismatch& mismatch, SearchBudget& searches,
                                            Reporter& reporter);

    void on_verified_snapshot(const record::SnapshotRecord& record, Reporter& reporter) {
        if (suspect_values_) [[unlikely]] {
            suspect_values_->on_verified_snapshot(
                record.tick, record.items, record.previous.value_or(snapshot::SnapshotView{}),
                reporter);
            if (suspect_values_->empty()) {
                suspect_values_.reset();
            }
        }
    }

    /// Reports what is known about the newest mismatch. Forgets undecided snapshots (SizeLearner),
    /// but keeps the learned sizes. Must be called if the next snapshots are not based on earlier
    /// snapshots.
    void forget_snapshots(Reporter& reporter) {
        report_suspects(reporter);
        if (size_learner_) {
            size_learner_->forget_snapshots();
        }
    }

    /// Forgets learned sizes. Must be called when a new connection begins, after forget_snapshots()
    /// and after the dialect of the item types was set.
    void forget_learned_sizes() {
        agreed_sizes_ = &types_->objects().sizes(types_->dialect());
        size_learner_.reset();
    }

    /// Returns the item sizes that this session and the server's other sessions learned.
    [[nodiscard]] std::vector<LearnedSize> learned_sizes() const {
        return size_learner_ ? size_learner_->learned_sizes()
                             : SizeLearner{*types_, shared_sizes_}.learned_sizes();
    }

    /// Continues with the sizes that a previous observer learned.
    void restore_learned_sizes(std::span<const LearnedSize> learned) {
        if (!learned.empty()) {
            size_learner_ = std::make_unique<SizeLearner>(*types_, shared_sizes_);
            size_learner_->restore_learned_sizes(learned);
        }
    }

    [[nodiscard]] std::size_t memory_bytes() const {
        return size_learner_ ? size_learner_->memory_bytes() : 0;
    }

  private:
    void report_suspects(Reporter& reporter) {
        if (suspect_values_) {
            suspect_values_->report_result(reporter);
            suspect_values_.reset();
        }
    }

    void search_item_sizes(const snapshot::AssembledDelta& delta, snapshot::History& history,
                           std::optional<snapshot::Tick> verified, SnapshotWorkspace& workspace,
                           Reporter& reporter);
    /// Searches for item sizes that fit the delta. Returns whether exactly one set of sizes fits.
    /// If so, the delta can be decoded with these sizes.
    [[nodiscard]] bool explain_by_item_sizes(const snapshot::AssembledDelta& delta,
                                             const snapshot::History& history,
                                             std::optional<snapshot::Tick> verified,
                                             SnapshotWorkspace& workspace, Reporter& reporter);

    const record::ItemTypes* types_;
    const snapshot::AgreedSizes* agreed_sizes_;
    bool may_learn_sizes_;
    LearnedSizeTable::ServerSizes* shared_sizes_;
    /// Null as long as every delta fits the agreed sizes.
    std::unique_ptr<SizeLearner> size_learner_;
    /// Null if no mismatch waits for later verified snapshots.
    std::unique_ptr<SuspectValues> suspect_values_;
};

} // namespace tw::inspect
