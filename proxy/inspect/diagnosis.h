#pragma once

#include "proxy/inspect/look_back.h"
#include "proxy/inspect/mismatch.h"
#include "proxy/inspect/rebuild.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/size_learner.h"
#include "proxy/record/records.h"

#include <memory>
#include <optional>

namespace tw::inspect {

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
