#pragma once

#include "proxy/record/records.h"

#include <cstdint>
#include <string_view>
#include <variant>

namespace tw::run {

/// What is written of a game: what each session was shown, the world that is made of it, or both.
enum class ViewChoice : std::uint8_t { sessions, world, both };

/// Lets all records pass but snapshots, whose place worlds take, and the messages that carry them.
class WithoutSnapshots final : public record::RecordSink {
  public:
    explicit WithoutSnapshots(record::RecordSink& to) : to_{&to} {}

    void on_record(const record::Record& record) override {
        if (!std::holds_alternative<const record::SnapshotRecord*>(record) && !carries(record)) {
            to_->on_record(record);
        }
    }

  private:
    [[nodiscard]] static bool carries(const record::Record& record) {
        constexpr std::string_view kSnap = "snap";
        const auto* const* message = std::get_if<const record::MessageRecord*>(&record);
        return message != nullptr && (*message)->system &&
               ((*message)->name == kSnap || (*message)->name.starts_with("snap_"));
    }

    record::RecordSink* to_;
};

} // namespace tw::run
