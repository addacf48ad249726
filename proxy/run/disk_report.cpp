#include "proxy/run/disk_report.h"

#include <cstdlib>
#include <system_error>

#include <spdlog/spdlog.h>

namespace tw::run {

void DiskReport::check(sink::RecordTarget& file) {
    if (const auto cut = file.take_cut_bytes(); cut != 0) {
        spdlog::warn("{} ended in the middle of a record: removed its last {} bytes", file.path(),
                     cut);
    }
    if (const auto jump = file.take_clock_jump(); jump != 0) {
        spdlog::warn(
            "the clock was set {} by {} seconds; what {} keeps is counted by the time that "
            "passed",
            jump > 0 ? "forward" : "back", std::abs(jump), file.path());
    }
    const int error = file.error();
    if (error == error_) {
        return;
    }
    error_ = error;
    if (error != 0) {
        spdlog::error("recording to {} stopped: {}; forwarding continues", file.path(),
                      std::generic_category().message(error));
    } else {
        spdlog::info("recording to {} resumed", file.path());
    }
}

} // namespace tw::run
