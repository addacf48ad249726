#pragma once

#include "proxy/inspect/observer.h"
#include "proxy/sink/datagram_sink.h"

namespace tw::run {

/// Shows a sink every datagram that is looked at.
class CaptureObserver final : public inspect::Observer {
  public:
    /// `sink` has to outlive it.
    explicit CaptureObserver(sink::DatagramSink& sink) : sink_{&sink} {}

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        sink_->on_datagram(head, datagram);
    }

    void on_datagram_end() override { sink_->on_datagram_end(); }

  private:
    sink::DatagramSink* sink_;
};

} // namespace tw::run
