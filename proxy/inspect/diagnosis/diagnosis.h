#pragma once

#include "proxy/inspect/diagnosis/size_learner.h"
#include "proxy/inspect/diagnosis/suspects.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "snapshot/delta.h"
#include "snapshot/error.h"
#include "snapshot/history.h"
#include "snapshot/parts.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::inspect {

/// The known cause of a snapshot's wrong checksum.
struct MismatchCause {
    /// The name in records: "duplicate_update", "odd_delta", "damaged_value",
    /// "damaged_checksum", "ambiguous" or "unknown".
    std::string_view name{};
    std::string sentence{};
    /// If there is only one possible cause: the item that caused the wrong checksum, and the index in the
    /// delta's ints of the wrong value or of the item's update.
    std::optional<snapshot::ItemKey> key{};
    std::optional<std::size_t> int_index{};
    std::string field{}; ///< if the cause is a single wrong value: its field
    /// If there are several possible causes: their items or values, most likely first.
    std::vector<snapshot::ItemKey> odd_items{};
    std::vector<Suspects::Suspect> damaged{};
};

/// Searches for a cause that explains the wrong checksum exactly: a second update of an item, or one flipped
/// bit in one value of the delta. `suspects`: all values, most likely first.
[[nodiscard]] MismatchCause explain_mismatch(const Mismatch& mismatch,
                                             std::vector<Suspects::Suspect> suspects);

// Findings about a delta. They contain the item, the part and the offset of the error.

/// An item's key and the name of its type, for a finding. The name is empty if no descriptor item of the
/// type was seen yet.
[[nodiscard]] record::FindingItem name_item(const record::TypeNames& types, snapshot::ItemKey key);

/// The finding for a delta that cannot be decoded or applied. Its bytes point into `body`, the
/// delta's body.
[[nodiscard]] record::FindingRecord decode_finding(const snapshot::DecodeError& error,
                                                   std::span<const std::byte> body,
                                                   const record::TypeNames& types);

/// Adds the position of one of the delta's ints to a finding: the part, the int's offset in the part, and
/// the bytes at this place.
void point_at_int(record::FindingRecord& finding, std::span<const std::byte> body,
                  std::size_t int_index);

/// The most likely causes of a finding, with their names.
class Candidates {
  public:
    /// The most candidates in list(). Further candidates are only counted.
    static constexpr std::size_t kMaxListed = 5;

    /// The candidates are values. `values`: most likely first.
    Candidates(std::span<const Suspects::Suspect> values, const record::TypeNames& types);
    /// The candidates are the items or values of the possible causes.
    Candidates(const MismatchCause& cause, const record::TypeNames& types);

    Candidates(const Candidates&) = delete;
    Candidates& operator=(const Candidates&) = delete;
    ~Candidates() = default;

    /// Returns the candidates as a view, valid as long as this object; nullopt if there are none.
    [[nodiscard]] std::optional<record::CandidateList> list() const;

  private:
    std::size_t count_;
    std::array<std::string, kMaxListed> fields_;
    std::vector<record::Candidate> listed_;
};

/// The finding for a wrong checksum, without candidates. Its bytes point into the delta's body, at
/// the wrong value or the likeliest candidate for it.
[[nodiscard]] record::FindingRecord checksum_finding(const Mismatch& mismatch,
                                                     const MismatchCause& cause);

void report_warnings(const snapshot::AssembledDelta& delta, const snapshot::DeltaWarnings& warnings,
                     const record::TypeNames& types, Reporter& reporter);

/// Counts and reports incomplete deltas, whose missing parts will not arrive any more.
void report_lost(std::span<const snapshot::LostDelta> lost, Reporter& reporter);

/// The result of applying a delta to its base. The views are valid until the history changes.
struct Rebuilt {
    DeltaFate fate = DeltaFate::accepted; ///< accepted, mismatched, undecodable or unknown_base
    snapshot::SnapshotView base{};
    /// The rebuilt snapshot in the history's memory; empty unless `fate` is accepted or mismatched.
    snapshot::SnapshotView result{};
    std::int32_t crc = 0;          ///< checksum of `result`
    snapshot::DecodeError error{}; ///< set if `fate` is undecodable
    snapshot::DeltaWarnings warnings{};
};

/// Rebuilds the snapshot of a delta in reserved memory of the history. The caller decides whether to store
/// the snapshot. `decoded`: gets the decoded delta, if the base is known.
void rebuild(const snapshot::AssembledDelta& delta, const snapshot::AgreedSizes& sizes,
             snapshot::History& history, snapshot::Delta& decoded, Rebuilt& rebuilt);

/// Whether the rebuilt snapshot equals its base. Slower than keeps_base().
[[nodiscard]] bool are_same(const Rebuilt& rebuilt, const snapshot::Delta& delta);

/// Whether the rebuilt snapshot equals its base. Fast, because for most deltas the first int shows that it
/// does not.
[[nodiscard]] inline bool keeps_base(const Rebuilt& rebuilt, const snapshot::Delta& delta) {
    if (!delta.updates.empty()) {
        const snapshot::DeltaUpdate& first = delta.updates.front();
        if (first.size != 0 && delta.ints[first.begin] != 0) [[likely]] {
            return false;
        }
    }
    return are_same(rebuilt, delta);
}

/// Finds the wrong value in a snapshot with a wrong checksum, by the verified snapshots before and after it.
/// The wrong value does not fit the item's values in these snapshots, but it does after the checksum's
/// error is subtracted.
class LookBack {
  public:
    /// A value is reported if the probability that another value is the wrong one is below this.
    static constexpr double kMaxDoubt = 0.01;
    /// If that probability is below this, the reported value is called exact, otherwise likely. The limit is
    /// low, because the probabilities are not quite right: they treat values as independent. Of 74,000
    /// values reported after a flipped bit, 26 were not the wrong one. The lowest probability of these 26
    /// was 4e-6.
    static constexpr double kMaxExactDoubt = 1e-7;

    LookBack(const Mismatch& mismatch, Suspects suspects);

    [[nodiscard]] bool waits() const { return !suspects_.empty(); }

    /// The next verified snapshot arrived. `previous`: the verified snapshot before it; empty if there is
    /// none.
    void on_verified(snapshot::Tick tick, const snapshot::SnapshotView& verified,
                     const snapshot::SnapshotView& previous, const record::TypeNames& types,
                     Reporter& reporter);
    /// No further verified snapshot will arrive: reports the wrong value, as far as it is known.
    void finish(const record::TypeNames& types, Reporter& reporter);

  private:
    void report_value(const std::vector<Suspects::Suspect>& ranked, const record::TypeNames& types,
                      Reporter& reporter) const;

    snapshot::Tick tick_;
    std::int32_t wanted_;
    std::int32_t got_;
    std::vector<std::byte> body_;
    Suspects suspects_;
};

/// Explains why snapshots of a connection cannot be decoded or verified. While all can, this takes neither
/// memory nor time.
class Diagnosis {
  public:
    /// `agreed`: the agreed item sizes of the dialect. `learn`: whether to decode with learned item sizes.
    /// `shared`: sizes that sessions of the server learned; null: nothing is shared. `agreed` and `shared`
    /// must outlive this object.
    Diagnosis(const snapshot::AgreedSizes& agreed, bool learn, LearnedSizes::Server* shared)
        : agreed_{&agreed}, learn_{learn}, shared_{shared} {}

    /// What rebuild() needs in addition to the delta.
    struct Context {
        std::optional<snapshot::Tick> verified{}; ///< tick of the last verified snapshot
        const record::TypeNames* types = nullptr;
        SearchBudget* searches = nullptr;
        Reporter* reporter = nullptr;
    };

    /// Rebuilds a snapshot. If the delta does not fit the known item sizes, searches for sizes that fit.
    void rebuild(const snapshot::AssembledDelta& delta, snapshot::History& history,
                 snapshot::Delta& decoded, Rebuilt& rebuilt, const Context& context) {
        if (learner_ == nullptr) [[likely]] {
            inspect::rebuild(delta, *agreed_, history, decoded, rebuilt);
            if (rebuilt.fate == DeltaFate::accepted && decoded.surplus_ints == 0) [[likely]] {
                return;
            }
        }
        search(delta, history, decoded, rebuilt, context);
    }

    /// An empty snapshot of `tick` arrived, and its base is not in the history.
    void on_empty(snapshot::Tick base, snapshot::Tick tick) {
        if (learner_ && learn_) {
            learner_->on_empty(base, tick);
        }
    }

    /// Explains a wrong checksum as far as possible now. If later verified snapshots show the cause, it is
    /// reported then.
    [[nodiscard]] MismatchCause on_mismatch(const Mismatch& mismatch, SearchBudget& searches,
                                            Reporter& reporter);

    void on_verified(const record::SnapshotRecord& record, Reporter& reporter) {
        if (look_back_) [[unlikely]] {
            look_back_->on_verified(record.tick, record.items,
                                    record.previous.value_or(snapshot::SnapshotView{}),
                                    *record.types, reporter);
            if (!look_back_->waits()) {
                look_back_.reset();
            }
        }
    }

    /// The next snapshots do not continue the earlier ones: reports what waits for later snapshots. Learned
    /// sizes stay.
    void finish(const record::TypeNames& types, Reporter& reporter) {
        finish_look_back(types, reporter);
        if (learner_) {
            learner_->forget_undecided();
        }
    }

    /// A new connection begins. Must be called after finish(). `agreed` must outlive this object.
    void reset(const snapshot::AgreedSizes& agreed) {
        agreed_ = &agreed;
        learner_.reset();
    }

    /// The sizes that this session and other sessions of the server learned.
    [[nodiscard]] std::vector<LearnedSize> learned(snapshot::Dialect dialect) const {
        return learner_ ? learner_->save(dialect) : SizeLearner{*agreed_, shared_}.save(dialect);
    }

    /// Continues with the sizes that a previous observer learned.
    void restore(std::span<const LearnedSize> learned, snapshot::Dialect dialect) {
        if (!learned.empty()) {
            learner_ = std::make_unique<SizeLearner>(*agreed_, shared_);
            learner_->restore(learned, dialect);
        }
    }

    [[nodiscard]] std::size_t memory_bytes() const {
        return learner_ ? learner_->memory_bytes() : 0;
    }

  private:
    void finish_look_back(const record::TypeNames& types, Reporter& reporter) {
        if (look_back_) {
            look_back_->finish(types, reporter);
            look_back_.reset();
        }
    }

    void search(const snapshot::AssembledDelta& delta, snapshot::History& history,
                snapshot::Delta& decoded, Rebuilt& rebuilt, const Context& context);
    /// Searches for item sizes that fit the delta. Returns whether exactly one solution is left; `decoded`
    /// then contains the delta, decoded with it.
    [[nodiscard]] bool explain(const snapshot::AssembledDelta& delta,
                               const snapshot::History& history, snapshot::Delta& decoded,
                               const Rebuilt& rebuilt, const Context& context);

    const snapshot::AgreedSizes* agreed_;
    bool learn_;
    LearnedSizes::Server* shared_;
    std::unique_ptr<SizeLearner> learner_; ///< null while every delta fits
    /// Set while a snapshot with a wrong checksum waits for later verified snapshots.
    std::unique_ptr<LookBack> look_back_;
};

} // namespace tw::inspect
