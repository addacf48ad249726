#include "proxy/inspect/diagnosis.h"

#include <utility>

namespace tw::inspect {

namespace {

/// Of a body that is cut or too long, sizes say nothing.
bool is_cut(const snapshot::DecodeError& error) {
    return error.code == snapshot::DecodeErrc::truncated ||
           error.code == snapshot::DecodeErrc::too_many_ints;
}

} // namespace

bool Diagnosis::explain(const snapshot::AssembledDelta& delta, const snapshot::History& history,
                        snapshot::Delta& decoded, const Rebuilt& rebuilt, const Known& known) {
    if (rebuilt.fate == DeltaFate::unknown_base) {
        if (!learner_ || !learn_ || !learner_->is_undecided(delta.delta_tick)) {
            return false;
        }
        const auto read = snapshot::decode_delta(delta.body, decoded, *agreed_);
        return (read || !is_cut(read.error())) &&
               learner_->on_undecided(decoded.ints, delta.delta_tick, delta.tick, delta.crc);
    }
    if (rebuilt.fate == DeltaFate::undecodable && is_cut(rebuilt.error)) {
        return false;
    }
    if (!learner_) {
        learner_ = std::make_unique<SizeLearner>(*agreed_, shared_);
    }
    const SizeLearner::Misfit misfit{
        .delta = {.ints = decoded.ints, .base = rebuilt.base, .crc = delta.crc},
        .tick = delta.tick,
        .right = known.right ? history.find(*known.right).value_or(snapshot::SnapshotView{})
                             : snapshot::SnapshotView{},
        .types = known.types};
    return learner_->on_misfit(misfit, *known.reporter, *known.searches);
}

// Without a learner it was rebuilt already, and did not fit.
void Diagnosis::search(const snapshot::AssembledDelta& delta, snapshot::History& history,
                       snapshot::Delta& decoded, Rebuilt& rebuilt, const Known& known) {
    if (learner_) {
        inspect::rebuild(delta, learn_ ? learner_->sizes() : *agreed_, history, decoded, rebuilt);
        if (rebuilt.fate == DeltaFate::accepted && decoded.surplus_ints == 0) {
            if (learn_) {
                learner_->on_fit(decoded, rebuilt.result, delta.tick, *known.types,
                                 *known.reporter);
            }
            return;
        }
    }
    if (explain(delta, history, decoded, rebuilt, known) && learn_) {
        learner_->settle(history);
        inspect::rebuild(delta, learner_->sizes(), history, decoded, rebuilt);
    }
}

MismatchCause Diagnosis::on_mismatch(const Mismatch& mismatch, SearchBudget& searches,
                                     Reporter& reporter) {
    finish_look_back(*mismatch.types, reporter);
    searches.begin(reporter.head().time);
    Suspects suspects{mismatch, searches};
    searches.end();
    MismatchCause cause = explain_mismatch(mismatch, suspects.ranked(*mismatch.types));
    // A delta that is odd is wrong in more than a value.
    if (mismatch.warnings->count == 0 && !suspects.empty()) {
        look_back_ = std::make_unique<LookBack>(mismatch, std::move(suspects));
    }
    return cause;
}

} // namespace tw::inspect
