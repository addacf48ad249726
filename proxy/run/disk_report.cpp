#include "proxy/run/disk_report.h"

#include <system_error>

#include <spdlog/spdlog.h>

namespace tw::run {

void DiskReport::check(sink::RecordTarget& file) {
    if (const auto cut = file.take_cut_bytes(); cut != 0) {
        spdlog::warn("{} ended within a record: {} bytes were cut off", file.path(), cut);
    }
    const int error = file.error();
    if (error == error_) {
        return;
    }
    error_ = error;
    if (error != 0) {
        spdlog::error("recording to {} stopped: {}; forwarding goes on", file.path(),
                      std::generic_category().message(error));
    } else {
        spdlog::info("recording to {} goes on", file.path());
    }
}

} // namespace tw::run
