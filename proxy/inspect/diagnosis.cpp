#include "proxy/inspect/diagnosis.h"

namespace tw::inspect {

Rebuilt Diagnosis::rebuild(const snapshot::AssembledDelta& delta, snapshot::History& history,
                           snapshot::Delta& decoded, const Known& known) {
    const bool learned = learn_ && learner_ != nullptr;
    Rebuilt rebuilt =
        inspect::rebuild(delta, learned ? learner_->sizes() : *agreed_, history, decoded);
    if (rebuilt.fate == DeltaFate::accepted && decoded.surplus_ints == 0) [[likely]] {
        if (learned) {
            learner_->on_fit(decoded, delta.tick, *known.types, *known.reporter);
        }
        return rebuilt;
    }
    if (rebuilt.fate == DeltaFate::unknown_base) {
        return rebuilt;
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
        rebuilt = inspect::rebuild(delta, learner_->sizes(), history, decoded);
    }
    return rebuilt;
}

void Diagnosis::on_refused(const LookBack::Refused& refused) {
    if (!look_back_) {
        look_back_ = std::make_unique<LookBack>();
    }
    look_back_->on_refused(refused);
}

} // namespace tw::inspect
