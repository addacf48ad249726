#pragma once

#include "proxy/inspect/diagnosis/size_learner.h"
#include "proxy/inspect/diagnosis/suspects.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "snapshot/delta.h"
#include "snapshot/error.h"
#include "snapshot/history.h"
#include "snapshot/parts.h"
#include "snapshot/shared_deltas.h"
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

/// Why the checksums differ, as far as it is known.
struct MismatchCause {
    /// "duplicate_update", "odd_delta", "damaged_value", "ambiguous" or "unknown".
    std::string_view name{};
    std::string_view sentence{};
    /// The item, and its value or update in the delta's ints; only where no other can be meant.
    std::optional<snapshot::ItemKey> key{};
    std::optional<std::size_t> int_index{};
    std::string field{}; ///< of the item, if it is one value
    /// Otherwise the items that may be meant, or the values, the likeliest first.
    std::vector<snapshot::ItemKey> odd_items{};
    std::vector<Suspects::Suspect> damaged{};
};

/// Looks for what explains the difference of the checksums exactly: a second item with the same
/// key, or one value of the delta with one flipped bit. `suspects`: all, the likeliest first.
[[nodiscard]] MismatchCause explain_mismatch(const Mismatch& mismatch,
                                             std::vector<Suspects::Suspect> suspects);

// What is wrong with a delta, and where: the item, the part and the offset in it.

/// The item as findings name it; without a name while its descriptor is missing.
[[nodiscard]] record::FindingItem name_item(const record::TypeNames& types, snapshot::ItemKey key);

/// A delta that cannot be decoded or applied; points into the body.
[[nodiscard]] record::FindingRecord decode_finding(const snapshot::DecodeError& error,
                                                   std::span<const std::byte> body,
                                                   const record::TypeNames& types);

/// Adds where in a body an int is: part, offset and the part's bytes.
void point_at_int(record::FindingRecord& finding, std::span<const std::byte> body,
                  std::size_t int_index);

/// The likeliest few of what a finding may be about, and their names.
class Candidates {
  public:
    /// More are only counted.
    static constexpr std::size_t kMaxListed = 5;

    /// The likeliest first.
    Candidates(std::span<const Suspects::Suspect> values, const record::TypeNames& types);
    /// Of a cause that is not known.
    Candidates(const MismatchCause& cause, const record::TypeNames& types);

    Candidates(const Candidates&) = delete;
    Candidates& operator=(const Candidates&) = delete;
    Candidates(Candidates&&) = delete;
    Candidates& operator=(Candidates&&) = delete;
    ~Candidates() = default;

    /// Valid while this is; nothing if there are none.
    [[nodiscard]] std::optional<record::CandidateList> list() const;

  private:
    std::size_t count_;
    std::array<std::string, kMaxListed> fields_;
    std::vector<record::Candidate> listed_;
};

/// A delta whose result has another checksum; points into its body where the cause is known.
/// Candidates are for the caller to add.
[[nodiscard]] record::FindingRecord checksum_finding(const Mismatch& mismatch,
                                                     const MismatchCause& cause);

void report_warnings(const snapshot::AssembledDelta& delta, const snapshot::DeltaWarnings& warnings,
                     const record::TypeNames& types, Reporter& reporter);

/// Counts and reports the deltas whose missing parts will not come any more.
void report_lost(std::span<const snapshot::LostDelta> lost, Reporter& reporter);

/// What came of applying a delta to its base. Views are valid until the history changes, and say
/// something where `fate` lets them.
struct Rebuilt {
    DeltaFate fate = DeltaFate::accepted; ///< or mismatched, undecodable, unknown_base
    snapshot::SnapshotView base{};
    snapshot::SnapshotView result{}; ///< accepted or mismatched: lies in the history's room
    std::int32_t crc = 0;            ///< of the result
    snapshot::DecodeError error{};   ///< why it is undecodable
    snapshot::DeltaWarnings warnings{};
};

/// Rebuilds the snapshot of a delta behind those that the history has; it is for the caller to keep
/// it. Of what the delta was read with, `decoded` holds the ints in any case but an unknown base.
/// `shared`: what decodes it; null: it is decoded alone.
void rebuild(const snapshot::AssembledDelta& delta, const snapshot::AgreedSizes& sizes,
             snapshot::History& history, snapshot::Delta& decoded, Rebuilt& rebuilt,
             snapshot::SharedDeltas* shared = nullptr);

/// Whether base and result are equal, after a delta that says no other than zeros.
[[nodiscard]] bool are_same(const Rebuilt& rebuilt, const snapshot::Delta& delta);

/// Whether a delta built its base once more. Most say by their first int that they do not.
[[nodiscard]] inline bool leaves_as_is(const Rebuilt& rebuilt, const snapshot::Delta& delta) {
    if (!delta.updates.empty()) {
        const snapshot::DeltaUpdate& first = delta.updates.front();
        if (first.size != 0 && delta.ints[first.begin] != 0) [[likely]] {
            return false;
        }
    }
    return are_same(rebuilt, delta);
}

/// Looks back at a refused snapshot when the next right ones are there: the wrong value is the one
/// that does not follow from what was before and after, and would if the checksum's error were taken
/// from it.
class LookBack {
  public:
    /// A value is named if the probability that another is wrong is below this.
    static constexpr double kDoubt = 0.01;
    /// It is called exact below this, otherwise likely. The probabilities treat values as independent,
    /// which they are not quite: of 74,000 that were named after a flipped bit, 26 were wrong, and
    /// the surest of these had a doubt of 4e-6.
    static constexpr double kExactDoubt = 1e-7;

    LookBack(const Mismatch& mismatch, Suspects suspects);

    [[nodiscard]] bool waits() const { return !suspects_.empty(); }

    /// The next right snapshot is here; `previous`: the last one before it, if there was one.
    void on_right(snapshot::Tick tick, const snapshot::SnapshotView& right,
                  const snapshot::SnapshotView& previous, const record::TypeNames& types,
                  Reporter& reporter);
    /// No other will come: tells what is known.
    void finish(const record::TypeNames& types, Reporter& reporter);

  private:
    void tell(const std::vector<Suspects::Suspect>& ranked, const record::TypeNames& types,
              Reporter& reporter) const;

    snapshot::Tick tick_;
    std::int32_t wanted_;
    std::int32_t got_;
    std::vector<std::byte> body_;
    Suspects suspects_;
};

/// What is tried where a connection's snapshots do not fit. While they do, it holds nothing and
/// costs nothing.
class Diagnosis {
  public:
    /// `agreed` and `shared` outlive it. `learn`: what is found is decoded with. `shared`: what other
    /// sessions of the server named; null: nothing is shared.
    Diagnosis(const snapshot::AgreedSizes& agreed, bool learn, LearnedSizes::Server* shared)
        : agreed_{&agreed}, learn_{learn}, shared_{shared} {}

    struct Known {
        std::optional<snapshot::Tick> right{}; ///< the last snapshot that was
        const record::TypeNames* types = nullptr;
        SearchBudget* searches = nullptr;
        Reporter* reporter = nullptr;
        snapshot::SharedDeltas* shared = nullptr; ///< null: deltas are decoded alone
    };

    /// Rebuilds a snapshot; where it does not fit, looks for sizes under which it does.
    void rebuild(const snapshot::AssembledDelta& delta, snapshot::History& history,
                 snapshot::Delta& decoded, Rebuilt& rebuilt, const Known& known) {
        if (learner_ == nullptr) [[likely]] {
            inspect::rebuild(delta, *agreed_, history, decoded, rebuilt, known.shared);
            if (rebuilt.fate == DeltaFate::accepted && decoded.surplus_ints == 0) [[likely]] {
                return;
            }
        }
        search(delta, history, decoded, rebuilt, known);
    }

    /// What is known of why a snapshot has a wrong checksum. Right ones that follow may tell more.
    [[nodiscard]] MismatchCause on_mismatch(const Mismatch& mismatch, SearchBudget& searches,
                                            Reporter& reporter);

    /// A snapshot is right.
    void on_right(const record::SnapshotRecord& record, Reporter& reporter) {
        if (look_back_) [[unlikely]] {
            look_back_->on_right(record.tick, record.items,
                                 record.previous.value_or(snapshot::SnapshotView{}), *record.types,
                                 reporter);
            if (!look_back_->waits()) {
                look_back_.reset();
            }
        }
    }

    /// What follows has nothing to do with the snapshots before it; sizes stay.
    void finish(const record::TypeNames& types, Reporter& reporter) {
        finish_look_back(types, reporter);
        if (learner_) {
            learner_->forget_undecided();
        }
    }

    /// Another connection, after `finish`. `agreed` outlives it.
    void reset(const snapshot::AgreedSizes& agreed) {
        agreed_ = &agreed;
        learner_.reset();
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
                snapshot::Delta& decoded, Rebuilt& rebuilt, const Known& known);
    /// Whether one explanation is left that reads it.
    [[nodiscard]] bool explain(const snapshot::AssembledDelta& delta,
                               const snapshot::History& history, snapshot::Delta& decoded,
                               const Rebuilt& rebuilt, const Known& known);

    const snapshot::AgreedSizes* agreed_;
    bool learn_;
    LearnedSizes::Server* shared_;
    std::unique_ptr<SizeLearner> learner_; ///< none while everything fits
    std::unique_ptr<LookBack> look_back_;  ///< while a refused snapshot waits for right ones
};

} // namespace tw::inspect
