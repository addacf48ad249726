#pragma once

#include "proxy/filter/filter.h"
#include "proxy/record/records.h"

#include <optional>
#include <vector>

namespace tw::run {

/// Hands every record to several sinks in order.
class Fanout final : public record::RecordSink {
  public:
    void add(record::RecordSink& sink) { sinks_.push_back(&sink); }

    void on_record(const record::Record& record) override {
        for (record::RecordSink* sink : sinks_) {
            sink->on_record(record);
        }
    }

  private:
    std::vector<record::RecordSink*> sinks_;
};

/// Adds a sink, behind a filter where there is one (which then lives in `holder`).
void add_filtered(Fanout& sinks, record::RecordSink& sink, std::optional<filter::Filter> filter,
                  std::optional<filter::FilteredSink>& holder);

} // namespace tw::run
