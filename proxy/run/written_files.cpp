#include "proxy/run/written_files.h"

#include <spdlog/spdlog.h>

namespace tw::run {

void WrittenFiles::complain() {
    for (auto* const files : {&files_, &flight_}) {
        while (const auto complaint = *files ? (*files)->take_complaint() : std::nullopt) {
            spdlog::error("not written: {}; forwarding continues", *complaint);
        }
    }
    if (page_) {
        page_->look();
    }
}

std::uint64_t WrittenFiles::finish(const sink::DemoLosses& losses) {
    if (page_) {
        page_->finish();
    }
    if (!files_) {
        return 0;
    }
    files_->finish();
    complain();
    for (const std::string& loss : sentences_of(losses)) {
        spdlog::warn("demos: {}", loss);
    }
    const std::uint64_t missing = losses.snapshots + losses.messages + files_->lost();
    if (missing != 0) {
        spdlog::error("demos are incomplete; {} blocks could not be written", files_->lost());
    }
    return missing;
}

void WrittenFiles::finish_flight(const sink::FlightTally& tally) {
    if (!flight_) {
        return;
    }
    flight_->finish();
    complain();
    spdlog::info("the flight recorder wrote {} captures; {} findings are in one that another "
                 "finding started",
                 flight_->created(), tally.held_back);
    if (tally.lost + flight_->lost() != 0) {
        spdlog::warn("its captures lack {} datagrams and {} blocks", tally.lost, flight_->lost());
    }
}

} // namespace tw::run
