#include "proxy/inspect/vital_order.h"

namespace tw::inspect {

wire::VitalClass VitalOrder::take(std::uint16_t sequence, bool resend) {
    if (!synced_) {
        const bool is_next = acknowledged_ && wire::classify_sequence(*acknowledged_, sequence) ==
                                                  wire::VitalClass::next;
        if (resend && !is_next) {
            return wire::VitalClass::old;
        }
        synced_ = true;
        last_ = sequence;
        ++taken_;
        return wire::VitalClass::next;
    }
    const wire::VitalClass what = wire::classify_sequence(last_, sequence);
    if (what == wire::VitalClass::next) {
        last_ = sequence;
        gap_ = false;
        ++taken_;
    } else if (what == wire::VitalClass::gap) {
        drop(sequence);
    }
    return what;
}

void VitalOrder::pass_over(std::uint16_t sequence) {
    if (synced_ && wire::classify_sequence(last_, sequence) != wire::VitalClass::old) {
        drop(sequence);
    }
}

void VitalOrder::drop(std::uint16_t sequence) {
    const wire::VitalClass behind = wire::classify_sequence(last_dropped_, sequence);
    if (!gap_ || behind == wire::VitalClass::gap) {
        first_dropped_ = last_dropped_ = sequence;
    } else if (behind == wire::VitalClass::next) {
        last_dropped_ = sequence;
    }
    gap_ = true;
}

bool VitalOrder::acknowledged(std::uint16_t ack) {
    if (!synced_) {
        acknowledged_ = ack;
        return false;
    }
    const unsigned ahead = wire::sequence_steps(last_, ack);
    if (!gap_ || ahead == 0 || ahead >= wire::kSequenceModulus / 2) {
        return false;
    }
    if (ahead + 1 < wire::sequence_steps(last_, first_dropped_)) {
        last_ = ack; // there is another gap
        return true;
    }
    last_ = ahead < wire::sequence_steps(last_, last_dropped_) ? last_dropped_ : ack;
    gap_ = false;
    return true;
}

void VitalOrder::reset(bool synced) {
    last_ = 0;
    taken_ = 0;
    acknowledged_.reset();
    synced_ = synced;
    gap_ = false;
}

} // namespace tw::inspect
