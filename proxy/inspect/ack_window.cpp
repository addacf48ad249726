#include "proxy/inspect/ack_window.h"

namespace tw::inspect {

void AckWindow::reset(bool from_start) {
    taken_ = from_start ? std::optional<std::uint16_t>{0} : std::nullopt;
    newest_ = taken_;
    ahead_ = 0;
}

void AckWindow::sent(std::uint16_t sequence) {
    if (!newest_ || wire::sequence_steps(*newest_, sequence) < wire::kSequenceModulus / 2) {
        newest_ = sequence;
    }
}

bool AckWindow::is_little_ahead(std::uint16_t ack) const {
    constexpr unsigned kMissedCopies = 16;
    return taken_ && newest_ &&
           wire::sequence_steps(*taken_, ack) > wire::sequence_steps(*taken_, *newest_) &&
           wire::sequence_steps(*newest_, ack) <= kMissedCopies;
}

bool AckWindow::take_little_ahead(std::uint16_t ack) {
    constexpr int kBelieved = 8; // a forged one stands between those of the server
    if (!is_little_ahead(ack)) {
        return false;
    }
    if (++ahead_ == kBelieved) {
        taken_ = newest_ = ack;
        ahead_ = 0;
    }
    return true;
}

bool AckWindow::take(std::uint16_t ack) {
    if (taken_ && newest_ &&
        wire::sequence_steps(*taken_, ack) > wire::sequence_steps(*taken_, *newest_)) {
        return false;
    }
    taken_ = ack;
    ahead_ = 0;
    return true;
}

} // namespace tw::inspect
