#include "proxy/inspect/vital_order.h"

namespace tw::inspect {

wire::VitalClass VitalOrder::take(std::uint16_t sequence, bool resend) {
    if (!synced_) {
        if (resend) {
            return wire::VitalClass::old;
        }
        synced_ = true;
        last_ = sequence;
        return wire::VitalClass::next;
    }
    const wire::VitalClass what = wire::classify_sequence(last_, sequence);
    if (what == wire::VitalClass::next) {
        last_ = sequence;
        gap_ = false;
    } else if (what == wire::VitalClass::gap) {
        gap_ = true;
    }
    return what;
}

void VitalOrder::acknowledged(std::uint16_t ack) {
    const unsigned ahead = (static_cast<unsigned>(ack) - last_) % wire::kSequenceModulus;
    if (gap_ && ahead != 0 && ahead < wire::kSequenceModulus / 2) {
        last_ = ack;
        gap_ = false;
    }
}

void VitalOrder::reset(bool synced) {
    last_ = 0;
    synced_ = synced;
    gap_ = false;
}

} // namespace tw::inspect
