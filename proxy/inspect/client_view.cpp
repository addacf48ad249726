#include "proxy/inspect/client_view.h"

#include <algorithm>
#include <string>

namespace tw::inspect {

using record::FindingId;

void ClientView::on_refused(snapshot::Tick tick, FindingId why) {
    ++refused_;
    refused_tick_ = std::max(refused_tick_, tick);
    why_ = why;
    errors_ += why == FindingId::snapshot_crc_mismatch ? 1U : 0U;
}

void ClientView::on_ack(snapshot::Tick tick, const Cadence& cadence, Reporter& reporter) {
    alive_ = reporter.head().time;
    if (tick == snapshot::kNoBase && acked_ != snapshot::kNoBase) {
        gave_up_ = true;
        errors_at_reset_ = errors_;
        errors_ = 0;
    }
    acked_ = tick;
    // It could use what we could not: an observer that came late, or a client of the server's mod.
    if (shown_ && refused_ != 0 && tick <= refused_tick_) {
        take({.tick = tick, .delta_tick = shown_->tick}, cadence, reporter);
    }
}

void ClientView::take(const Usable& snapshot, const Cadence& cadence, Reporter& reporter) {
    if (shown_ && snapshot.tick <= shown_->tick) {
        return; // clients show no older one
    }
    if (const std::uint64_t step = cadence.usual_step(); step != 0) {
        step_ = static_cast<snapshot::Tick>(step);
    }
    const record::Timestamp time = reporter.head().time;
    if (shown_ && time - shown_->time > overdue()) {
        count_freeze(time - shown_->time - step_ * kTick, snapshot, reporter);
    }
    // Before the first acknowledgement servers send rarely: nobody plays yet.
    if (shown_ || snapshot.delta_tick != snapshot::kNoBase) {
        shown_ = Shown{.tick = snapshot.tick, .time = time};
    }
    errors_ -= errors_ > 0 ? 1U : 0U;
    refused_ = 0;
    gave_up_ = false;
}

void ClientView::finish(Reporter& reporter) {
    if (shown_ && alive_ - shown_->time > overdue()) {
        count_freeze(alive_ - shown_->time - step_ * kTick, std::nullopt, reporter);
    }
    restart();
}

void ClientView::count_freeze(record::Timestamp frozen, const std::optional<Usable>& usable,
                              Reporter& reporter) {
    constexpr record::Timestamp kMicrosecond = 1000;
    constexpr record::Timestamp kMillisecond = 1'000'000;
    reporter.stats.freeze_us.add(frozen / kMicrosecond);
    reporter.stats.frozen_ms += static_cast<std::uint64_t>(frozen / kMillisecond);
    if (frozen < kStall) {
        return;
    }
    const std::string gave_up = !gave_up_ ? ""
                                : errors_at_reset_ == 0
                                    ? "the client asked for a full snapshot"
                                    : "the client asked for a full snapshot after " +
                                          std::to_string(errors_at_reset_) + " checksum errors";
    const bool late = refused_ == 0 && usable && usable->tick - shown_->tick <= step_;
    record::FindingRecord finding{.id = FindingId::snapshot_client_stalled,
                                  .since_tick = shown_->tick,
                                  .lost = refused_,
                                  .value = frozen / kMillisecond,
                                  .name = late            ? "late"
                                          : refused_ == 0 ? "lost"
                                          : why_ == FindingId::snapshot_unknown_base
                                              ? "unknown_base"
                                              : "rejected",
                                  .detail = gave_up};
    if (usable) {
        finding.tick = usable->tick;
        finding.delta_tick = usable->delta_tick;
    }
    reporter.finding(finding);
}

} // namespace tw::inspect
