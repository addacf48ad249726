#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/capture_sink.h"

namespace tw::sink {

/// Tells a capture that somebody wants the datagram at hand: the one that gives a record.
class Wanted final : public record::RecordSink {
  public:
    explicit Wanted(CaptureSink& capture) : capture_{&capture} {}

    void on_record(const record::Record& /*record*/) override { capture_->want(); }

  private:
    CaptureSink* capture_;
};

} // namespace tw::sink
