#include "proxy/run/disk_report.h"

#include <system_error>

#include <spdlog/spdlog.h>

namespace tw::run {

void DiskReport::check(sink::RecordTarget& file) {
    if (const auto cut = file.take_cut_bytes(); cut != 0) {
        spdlog::warn("{} ended in the middle of a record: removed its last {} bytes", file.path(),
                     cut);
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
