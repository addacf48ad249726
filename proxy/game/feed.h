#pragma once

#include "proxy/game/input.h"
#include "proxy/record/records.h"

namespace tw::game {

/// Picks out of the records of sessions what worlds are made of.
class Feed final : public record::RecordSink {
  public:
    /// `messages`: somebody wants to know what is said to everybody.
    explicit Feed(InputSink& to, bool messages = false) : to_{&to}, messages_{messages} {}

    void on_record(const record::Record& record) override;

  private:
    InputSink* to_;
    bool messages_;
};

} // namespace tw::game
