#pragma once

#include "proxy/inspect/records.h"
#include "proxy/inspect/stats.h"

#include <bitset>

namespace tw::inspect {

/// Where a session's parts hand in what they saw: completes the head, counts, passes on.
class Reporter {
  public:
    Reporter(std::uint32_t session, RecordSink& sink) : sink_{&sink} { head_.session = session; }

    /// The datagram at hand: every record from here on carries its time and direction.
    void begin(Timestamp time, std::optional<Direction> direction) {
        head_.time = time;
        head_.direction = direction;
    }

    [[nodiscard]] const RecordHead& head() const { return head_; }

    /// The head without a direction, for what concerns the session as a whole.
    [[nodiscard]] RecordHead session_head() const {
        return {.time = head_.time, .session = head_.session, .direction = std::nullopt};
    }

    template <typename T>
    void emit(const T& record) {
        sink_->on_record(Record{&record});
    }

    /// Counts and passes on.
    void finding(FindingRecord record) {
        count(record.id);
        record.head = head_;
        emit(record);
    }

    /// Counts every time, passes on only the first of its kind since `forget_once`.
    void finding_once(const FindingRecord& record) {
        const auto index = static_cast<std::size_t>(record.id);
        if (told_.test(index)) {
            count(record.id);
            return;
        }
        told_.set(index);
        finding(record);
    }

    /// A new connection: what was told once may be told again.
    void forget_once() { told_.reset(); }

    void count(FindingId id) { ++stats.findings[static_cast<std::size_t>(id)]; }

    /// Totals of the connection in progress.
    SessionStats stats;

    [[nodiscard]] DirectionStats& direction_stats() {
        return stats.directions[head_.direction == Direction::s2c ? 1 : 0];
    }

  private:
    RecordSink* sink_;
    RecordHead head_;
    std::bitset<kFindingCount> told_;
};

} // namespace tw::inspect
