#pragma once

#include "proxy/record/records.h"
#include "proxy/run/page_recordings.h"
#include "proxy/sink/capture_gathering.h"
#include "proxy/sink/datagram_sink.h"
#include "proxy/sink/demo_sink.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace tw::run {

/// A worker's part of what is recorded from the page. Until something is switched on it only keeps in
/// mind who plays where.
class PageRecorder final : public record::RecordSink, public sink::DatagramSink {
  public:
    /// `recordings` has to outlive it.
    explicit PageRecorder(PageRecordings& recordings);

    void on_record(const record::Record& record) override;

    /// Where states come from, for captures that begin in mid-game.
    void repeat_states(sink::StateSource states) {
        gathering_.blocks().repeat_states(std::move(states));
    }

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        if (capture_) {
            gathering_.blocks().on_datagram(head, datagram);
        }
    }

    void on_datagram_end() override;

    /// Some times a second: does what was ordered, hands over what is gathered.
    void on_time(record::Timestamp now);
    /// Nothing follows.
    void finish(record::Timestamp now);

  private:
    void obey(const PageRecordings::Orders& orders, record::Timestamp now);
    void end_capture(record::Timestamp now);

    PageRecordings* recordings_;
    sink::DemoSink demos_;
    bool demos_on_ = false;
    sink::DemoLosses told_{}; ///< losses that are counted already
    std::uint32_t round_ = 0;
    std::optional<sink::FileQueue::File> capture_;
    sink::CaptureGathering gathering_;
};

} // namespace tw::run
