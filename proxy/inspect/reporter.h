#pragma once

#include "proxy/record/records.h"
#include "proxy/record/stats.h"

#include <bitset>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// Where a session's parts hand in what they saw: completes the head, counts, passes on.
class Reporter {
  public:
    Reporter(std::uint32_t session, record::RecordSink& sink) : sink_{&sink} {
        head_.session = session;
    }

    /// Its server has a name; which lives as long as the run.
    void name_server(std::string_view name) { head_.server_name = name; }

    /// The datagram at hand: every record from here on carries its time and direction.
    void begin(record::Timestamp time, std::optional<wire::Direction> direction) {
        head_.time = time;
        head_.direction = direction;
        direction_ = direction.value_or(wire::Direction::c2s);
    }

    [[nodiscard]] const record::RecordHead& head() const { return head_; }

    /// The head without a direction, for what concerns the session as a whole.
    [[nodiscard]] record::RecordHead session_head() const {
        return {.time = head_.time,
                .session = head_.session,
                .direction = std::nullopt,
                .server_name = head_.server_name};
    }

    template <typename T>
    void emit(const T& record) {
        sink_->on_record(record::Record{&record});
    }

    /// Counts and passes on.
    void finding(record::FindingRecord record) {
        count(record.id);
        record.head = head_;
        emit(record);
    }

    /// Counts every time, passes on only the first of its kind since `forget_once`.
    void finding_once(const record::FindingRecord& record) {
        const auto index = static_cast<std::size_t>(record.id);
        if (reported_.test(index)) {
            count(record.id);
            return;
        }
        reported_.set(index);
        finding(record);
    }

    /// A new connection: what was reported once may be reported again.
    void forget_once() { reported_.reset(); }

    void count(record::FindingId id) { ++stats.findings[static_cast<std::size_t>(id)]; }

    /// Totals of the connection in progress.
    record::SessionStats stats;

    /// Of the datagram at hand; c2s where there is none.
    [[nodiscard]] wire::Direction direction() const { return direction_; }

    [[nodiscard]] record::DirectionStats& direction_stats() {
        return stats.directions[wire::index_of(direction())];
    }

  private:
    record::RecordSink* sink_;
    record::RecordHead head_;
    wire::Direction direction_ = wire::Direction::c2s;
    std::bitset<record::kFindingCount> reported_;
};

} // namespace tw::inspect
