#pragma once

#include "proxy/inspect/observer.h"
#include "proxy/sink/capture_sink.h"

namespace tw::run {

/// Shows a capture every datagram that is looked at.
class CaptureObserver final : public inspect::Observer {
  public:
    /// `capture` has to outlive it.
    explicit CaptureObserver(sink::CaptureSink& capture) : capture_{&capture} {}

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        capture_->on_datagram(head, datagram);
    }

    void on_datagram_end() override { capture_->on_datagram_end(); }

  private:
    sink::CaptureSink* capture_;
};

} // namespace tw::run
