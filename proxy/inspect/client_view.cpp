#include "proxy/inspect/client_view.h"

#include <algorithm>

namespace tw::inspect {

using record::FindingId;
using record::Timestamp;
using snapshot::Tick;

namespace {

constexpr Timestamp kMicrosecond = 1000;
constexpr Timestamp kMillisecond = 1'000'000;

/// "DDNet 16.4" for 16040; older ones than 10 counted otherwise.
std::string program_of(std::int32_t version) {
    constexpr std::int32_t kFirst = 10'000;
    if (version < kFirst) {
        return "DDNet " + std::to_string(version);
    }
    const std::string release =
        "DDNet " + std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
    return version % 10 == 0 ? release : release + '.' + std::to_string(version % 10);
}

std::string how_it_asked(bool asked, std::uint32_t errors) {
    if (!asked) {
        return {};
    }
    return errors == 0
               ? " asked for a full snapshot"
               : " asked for a full snapshot after " + std::to_string(errors) + " checksum errors";
}

} // namespace

void ClientView::on_refused(const Usable& snapshot, FindingId why, const Reporter& reporter) {
    ++refused_;
    arrivals_[num_arrivals_++ % kArrivals] = {.snapshot = snapshot, .time = reporter.head().time};
    refused_tick_ = std::max(refused_tick_, snapshot.tick);
    why_ = why;
    errors_ += why == FindingId::snapshot_crc_mismatch ? 1U : 0U;
}

void ClientView::follow(const Usable& snapshot, const Cadence& cadence, Reporter& reporter) {
    if (shown_ && snapshot.tick <= shown_->tick) {
        return; // clients show no older one
    }
    if (shown_ && snapshot.tick < newest_) {
        on_refused(snapshot, FindingId::count, reporter); // nor read it behind a newer one
        return;
    }
    take(snapshot, reporter.head().time, cadence, reporter);
}

void ClientView::follow(const Input& input, const Cadence& cadence, Reporter& reporter) {
    const Timestamp time = reporter.head().time;
    if (input.acked == snapshot::kNoBase) {
        if (run_.tick == snapshot::kNoBase) {
            return; // it never had one
        }
        if (!asks_) {
            gave_up_ = true;
            errors_at_reset_ = errors_;
            errors_ = 0;
        }
        asks_ = true;
        run_.asked = true;
        run_.last = time; // and shows what it showed
        run_.last_intended = input.intended;
        return;
    }
    asks_ = false;
    gave_up_ = false;
    // It could use what we could not: an observer that came late, or a client of the server's mod.
    if (shown_ && refused_ != 0 && input.acked <= refused_tick_ && input.acked > shown_->tick) {
        take_refused(input.acked, cadence, reporter);
    }
    if (!shown_ || input.acked > shown_->tick || input.acked < run_.tick) {
        return; // forged, of another map, or out of order
    }
    if (input.acked == run_.tick) {
        run_.last = time;
        run_.last_intended = input.intended;
        return;
    }
    end_run(input.acked, time, reporter);
    run_ = Run::begin(input, time);
}

void ClientView::take_refused(Tick tick, const Cadence& cadence, Reporter& reporter) {
    const auto* const found =
        std::find_if(arrivals_.begin(), arrivals_.end(), [tick](const Refused& each) {
            return each.time != 0 && each.snapshot.tick == tick;
        });
    const bool known = found != arrivals_.end();
    // It has the base, which did not pass here: what it showed meanwhile is not known.
    if (known && found->snapshot.delta_tick > shown_->tick) {
        const Shown shown{.tick = tick, .time = found->time};
        restart();
        alive_ = reporter.head().time;
        shown_ = shown;
        return;
    }
    take({.tick = tick, .delta_tick = shown_->tick}, known ? found->time : reporter.head().time,
         cadence, reporter);
}

void ClientView::take(const Usable& snapshot, Timestamp time, const Cadence& cadence,
                      Reporter& reporter) {
    if (const std::uint64_t step = cadence.usual_step(); step != 0) {
        step_ = static_cast<Tick>(step);
    }
    if (shown_ && time - shown_->time > overdue()) {
        count_freeze(time - shown_->time - step_ * kTick, snapshot, reporter);
    }
    // Before the first acknowledgement servers send rarely: nobody plays yet.
    if (shown_ || snapshot.delta_tick != snapshot::kNoBase) {
        shown_ = Shown{.tick = snapshot.tick, .time = time};
    }
    errors_ -= errors_ > 0 ? 1U : 0U;
    gave_up_ = false;
    // An acknowledgement may be of one before others that were refused.
    refused_ = static_cast<std::uint64_t>(
        std::count_if(arrivals_.begin(), arrivals_.end(), [&](const Refused& each) {
            return each.snapshot.tick > snapshot.tick && each.time != 0;
        }));
}

void ClientView::finish(Reporter& reporter) {
    if (shown_ && alive_ - shown_->time > overdue()) {
        count_freeze(alive_ - shown_->time - step_ * kTick, std::nullopt, reporter);
    }
    end_run(std::nullopt, run_.last, reporter);
    restart();
}

void ClientView::count_freeze(Timestamp frozen, const std::optional<Usable>& usable,
                              Reporter& reporter) {
    counted_[num_counted_++ % kCounted] = {.since = shown_->tick, .time = frozen};
    const bool late =
        refused_ == 0 ? usable && usable->tick - shown_->tick <= step_ : why_ == FindingId::count;
    tell({.time = frozen,
          .since = shown_->tick,
          .end = usable,
          .refused = refused_,
          .why = late                                       ? "late"
                 : refused_ == 0                            ? "lost"
                 : why_ == FindingId::snapshot_unknown_base ? "unknown_base"
                                                            : "rejected",
          .asked = how_it_asked(gave_up_, errors_at_reset_)},
         reporter);
}

void ClientView::end_run(std::optional<Tick> next, Timestamp end, Reporter& reporter) {
    // It went on somewhere between its last such input and the next. Inputs that waited on the way
    // come late and all at once: by the client's clock it was much shorter then. That clock strays
    // a little while there are no snapshots to hold on to.
    const Timestamp step = step_ * kTick;
    const Timestamp behind = std::min(end - run_.last, step);
    const Timestamp by_client =
        (std::int64_t{run_.last_intended} - run_.first_intended) * kTick + behind;
    Timestamp frozen = run_.last - run_.first + behind;
    frozen = (2 * by_client < frozen ? by_client : frozen) - step;
    for (const Counted& each : counted_) {
        if (each.since >= run_.tick && (!next || each.since < *next)) {
            frozen -= each.time;
        }
    }
    if (run_.tick == snapshot::kNoBase || frozen < kStall) {
        return;
    }
    tell({.time = frozen,
          .since = run_.tick,
          .end = next ? std::optional{Usable{.tick = *next}} : std::nullopt,
          .why = "unacknowledged",
          .asked = how_it_asked(run_.asked, 0)},
         reporter);
}

void ClientView::tell(const Freeze& freeze, Reporter& reporter) {
    reporter.stats.freeze_us.add(freeze.time / kMicrosecond);
    reporter.stats.frozen_ms += static_cast<std::uint64_t>(freeze.time / kMillisecond);
    if (freeze.time < kStall) {
        return;
    }
    const bool known = version_ && *version_ > 0;
    const std::string who = known ? program_of(*version_) : "the client";
    const std::string detail = !freeze.asked.empty() ? who + freeze.asked
                               : known               ? "the client is " + who
                                                     : "";
    record::FindingRecord finding{.id = FindingId::snapshot_client_stalled,
                                  .since_tick = freeze.since,
                                  .lost = freeze.refused,
                                  .value = freeze.time / kMillisecond,
                                  .name = freeze.why,
                                  .detail = detail};
    if (freeze.end) {
        finding.tick = freeze.end->tick;
        if (freeze.why != "unacknowledged") {
            finding.delta_tick = freeze.end->delta_tick;
        }
    }
    reporter.finding(finding);
}

} // namespace tw::inspect
