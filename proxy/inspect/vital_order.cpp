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
        gap_ = true;
    }
    return what;
}

bool VitalOrder::acknowledged(std::uint16_t ack) {
    if (!synced_) {
        acknowledged_ = ack;
        return false;
    }
    const unsigned ahead = (static_cast<unsigned>(ack) - last_) % wire::kSequenceModulus;
    if (gap_ && ahead != 0 && ahead < wire::kSequenceModulus / 2) {
        last_ = ack;
        gap_ = false;
        return true;
    }
    return false;
}

void VitalOrder::reset(bool synced) {
    last_ = 0;
    taken_ = 0;
    acknowledged_.reset();
    synced_ = synced;
    gap_ = false;
}

} // namespace tw::inspect
