#include "proxy/run/page_recorder.h"

#include <variant>

namespace tw::run {

PageRecorder::PageRecorder(PageRecordings& recordings)
    : recordings_{&recordings}, demos_{recordings.options().demos, recordings.files()},
      gathering_{[this](std::span<const std::byte> blocks) {
          return recordings_->files().append(*capture_, {blocks.begin(), blocks.end()});
      }} {
    demos_.set_on(false);
}

void PageRecorder::on_record(const record::Record& record) {
    demos_.on_record(record);
    if (capture_ || std::holds_alternative<const record::SessionRecord*>(record)) {
        gathering_.blocks().on_record(record);
    }
}

void PageRecorder::on_datagram_end() {
    if (capture_) {
        gathering_.end_datagram();
    }
}

void PageRecorder::end_capture(record::Timestamp now) {
    gathering_.finish(now);
    recordings_->leave(*capture_);
    capture_.reset();
}

void PageRecorder::obey(const PageRecordings::Orders& orders, record::Timestamp now) {
    if (orders.demos != demos_on_) {
        demos_on_ = orders.demos;
        demos_.set_on(demos_on_);
    }
    if (orders.round == round_) {
        return;
    }
    // No capture begins before all workers have left the one before: rounds come one by one, but both
    // of one may be over before it was seen here.
    const bool is_on = orders.round % 2 != 0;
    if (capture_) {
        end_capture(now);
    } else if (!is_on) {
        recordings_->leave(orders.capture);
    }
    round_ = orders.round;
    if (is_on) {
        capture_ = orders.capture;
        gathering_.forget(); // what was said of sessions that came before
        gathering_.blocks().introduce_again();
    }
}

void PageRecorder::on_time(record::Timestamp now) {
    obey(recordings_->orders(), now);
    if (capture_) {
        gathering_.flush();
    }
    const sink::DemoLosses losses = demos_.losses();
    const std::uint64_t lost = gathering_.take_lost() + losses.snapshots - told_.snapshots +
                               losses.messages - told_.messages;
    told_ = losses;
    if (lost != 0) {
        recordings_->add_losses(lost);
    }
}

void PageRecorder::finish(record::Timestamp now) {
    on_time(now);
    demos_.finish();
    if (capture_) {
        end_capture(now);
    }
}

} // namespace tw::run
