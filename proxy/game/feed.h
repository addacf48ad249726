#pragma once

#include "proxy/game/input.h"
#include "proxy/record/records.h"

namespace tw::game {

/// Picks out of the records of sessions what worlds are made of.
class Feed final : public record::RecordSink {
  public:
    explicit Feed(InputSink& to) : to_{&to} {}

    void on_record(const record::Record& record) override;

  private:
    InputSink* to_;
};

} // namespace tw::game
