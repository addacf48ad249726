#include "proxy/run/live_output.h"

namespace tw::run {

void LiveOutput::go_on_in(int descriptor) {
    if (descriptor >= 0 || target_->segmented()) {
        target_->go_on_in(descriptor);
    }
}

bool LiveOutput::check() {
    report_.check(*target_);
    return target_->moved() && !target_->segmented();
}

std::uint64_t LiveOutput::finish() {
    target_->hurry();
    queue_.finish();
    report_.check(*target_);
    return queue_.dropped() + target_->lost();
}

} // namespace tw::run
