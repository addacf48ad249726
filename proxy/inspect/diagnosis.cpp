#include "proxy/inspect/diagnosis.h"

#include <utility>

namespace tw::inspect {

// Without a learner it was rebuilt already, and did not fit.
void Diagnosis::search(const snapshot::AssembledDelta& delta, snapshot::History& history,
                       snapshot::Delta& decoded, Rebuilt& rebuilt, const Known& known) {
    if (learner_) {
        inspect::rebuild(delta, learn_ ? learner_->sizes() : *agreed_, history, decoded, rebuilt);
        if (rebuilt.fate == DeltaFate::accepted && decoded.surplus_ints == 0) {
            if (learn_) {
                learner_->on_fit(decoded, delta.tick, *known.types, *known.reporter);
            }
            return;
        }
    }
    // Of a body that is cut or too long, sizes say nothing.
    if (rebuilt.fate == DeltaFate::unknown_base ||
        (rebuilt.fate == DeltaFate::undecodable &&
         (rebuilt.error.code == snapshot::DecodeErrc::truncated ||
          rebuilt.error.code == snapshot::DecodeErrc::too_many_ints))) {
        return;
    }
    if (!learner_) {
        learner_ = std::make_unique<SizeLearner>(*agreed_);
    }
    const SizeLearner::Misfit misfit{
        .delta = {.ints = decoded.ints, .base = rebuilt.base, .crc = delta.crc},
        .tick = delta.tick,
        .right = known.right ? history.find(*known.right).value_or(snapshot::SnapshotView{})
                             : snapshot::SnapshotView{},
        .types = known.types};
    if (learner_->on_misfit(misfit, *known.reporter, *known.searches) && learn_) {
        inspect::rebuild(delta, learner_->sizes(), history, decoded, rebuilt);
    }
}

MismatchCause Diagnosis::on_mismatch(const Mismatch& mismatch, SearchBudget& searches,
                                     Reporter& reporter) {
    finish(*mismatch.types, reporter);
    searches.begin(reporter.head().time);
    Suspects suspects{mismatch, searches};
    searches.end();
    const MismatchCause cause = explain_mismatch(mismatch, suspects.ranked(*mismatch.types));
    // A delta that is odd is wrong in more than a value.
    if (mismatch.warnings->count == 0 && !suspects.empty()) {
        look_back_ = std::make_unique<LookBack>(mismatch, std::move(suspects));
    }
    return cause;
}

} // namespace tw::inspect
