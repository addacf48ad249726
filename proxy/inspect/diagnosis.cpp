#include "proxy/inspect/diagnosis.h"

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

void Diagnosis::on_refused(const LookBack::Refused& refused) {
    if (!look_back_) {
        look_back_ = std::make_unique<LookBack>();
    }
    look_back_->on_refused(refused);
}

} // namespace tw::inspect
