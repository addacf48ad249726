#include "proxy/run/impairment_control.h"

#include "proxy/relay/clock.h"

#include <spdlog/spdlog.h>

namespace tw::run {

namespace {

record::ImpairedDirection record_of(const relay::LineImpairment& line) {
    constexpr double kThousand = 1000;
    record::ImpairedDirection direction{.delay_us = line.delay.count(),
                                        .jitter_us = line.jitter.count(),
                                        .loss_ppm = line.loss,
                                        .dup_ppm = line.duplicate,
                                        .reorder_ppm = line.reorder,
                                        .rate_bps = line.rate};
    if (line.burst) {
        direction.burst = *line.burst / kThousand;
    }
    return direction;
}

} // namespace

ImpairmentControl::ImpairmentControl(RelayWindow& relay, sink::Output* records,
                                     const sink::JsonOptions& options)
    : relay_{&relay}, records_{records}, options_{options} {
    if (const relay::Impairment impairment = relay.impairment(); impairment.active()) {
        write(impairment);
    }
}

tl::expected<std::string, std::string> ImpairmentControl::set(std::string_view text) {
    const std::scoped_lock lock{mutex_};
    if (finished_) {
        return tl::unexpected{std::string{"the run is over"}};
    }
    if (relay_->is_tap()) {
        return tl::unexpected{std::string{"a tap only observes: it has no line to impair"}};
    }
    const auto impairment = relay::parse_impairment(text, relay_->impairment().seed);
    if (!impairment) {
        return tl::unexpected{impairment.error()};
    }
    if (!relay_->set_impairment(*impairment)) {
        return tl::unexpected{std::string{"the relay cannot be reached; try again"}};
    }
    write(*impairment);
    return relay::to_string(*impairment);
}

void ImpairmentControl::on_segment(std::uint32_t number) {
    if (number <= segment_) {
        return;
    }
    segment_ = number;
    const std::scoped_lock lock{mutex_};
    if (const relay::Impairment impairment = relay_->impairment(); impairment.active()) {
        write_record(impairment, true);
    }
}

void ImpairmentControl::finish() {
    const std::scoped_lock lock{mutex_};
    finished_ = true;
}

void ImpairmentControl::write(const relay::Impairment& impairment) {
    const std::string settings = relay::to_string(impairment);
    if (impairment.active()) {
        spdlog::info("the line is impaired: {} (seed {})", settings, impairment.seed);
    } else {
        spdlog::info("the line is no longer impaired");
    }
    write_record(impairment, false);
}

void ImpairmentControl::write_record(const relay::Impairment& impairment, bool again) {
    const std::string settings = relay::to_string(impairment);
    if (records_ == nullptr) {
        return;
    }
    const record::ImpairmentRecord record{
        .head = {.time = relay::now_utc()},
        .settings = settings,
        .seed = impairment.seed,
        .directions = {record_of(impairment.directions[0]), record_of(impairment.directions[1])},
        .again = again};
    sink::JsonLines line{options_, *records_};
    line.on_record(&record);
    line.flush();
}

std::optional<std::array<record::FateStats, 2>> impaired_totals(const relay::Counters& counters) {
    std::array<record::FateStats, 2> totals;
    std::uint64_t datagrams = 0;
    for (std::size_t i = 0; i < totals.size(); ++i) {
        const auto& fates = counters.fates[i];
        totals[i] = {.datagrams = fates.datagrams,
                     .lost = fates.lost,
                     .rate_dropped = fates.rate_dropped,
                     .queue_full = fates.queue_full,
                     .duplicated = fates.duplicated,
                     .reordered = fates.reordered};
        datagrams += fates.datagrams;
    }
    return datagrams != 0 ? std::optional{totals} : std::nullopt;
}

} // namespace tw::run
