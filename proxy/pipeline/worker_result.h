#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/flight_recorder.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tw::pipeline {

/// Passes each record to several sinks in order.
class Fanout final : public record::RecordSink {
  public:
    void add(record::RecordSink& sink) { sinks_.push_back(&sink); }

    /// Adds a sink behind a filter, if there is one.
    void add(record::RecordSink& sink, const std::optional<filter::Filter>& filter) {
        add(filter ? filtered_.emplace_back(*filter, sink) : sink);
    }

    void on_record(const record::Record& record) override {
        for (record::RecordSink* sink : sinks_) {
            sink->on_record(record);
        }
    }

  private:
    std::vector<record::RecordSink*> sinks_;
    std::deque<filter::FilteredSink> filtered_;
};

/// The state of each session that an ending observer saves, by the session's number at the relay.
using SessionCheckpoints = std::unordered_map<std::uint32_t, inspect::SessionCheckpoint>;

/// The size limit of checkpoints. They are passed on in an unnamed file. Sessions without a
/// checkpoint are treated as joined midway.
inline constexpr std::size_t kMaxCheckpointBytes = std::size_t{256} << 20U;

/// Creates the unnamed file for checkpoints. Returns an invalid descriptor and sets errno on
/// failure.
[[nodiscard]] base::UniqueFd create_checkpoint_file();

/// Writes checkpoints to a file. Returns how many were written; fewer than all if they are too
/// large or writing fails.
[[nodiscard]] std::size_t write_checkpoints(int file, const SessionCheckpoints& checkpoints);

/// Writes the checkpoints and logs how many were left out. Does nothing without a file.
void save_checkpoints(const base::UniqueFd& file, const SessionCheckpoints& checkpoints);

/// Reads a file of write_checkpoints(); empty if it is invalid or of another version.
[[nodiscard]] SessionCheckpoints read_checkpoints(int file);

/// The result of one worker, or merged of all workers of a run. A new member must also be added to
/// merge() and Worker::take_result().
struct WorkerResult {
    record::SessionStats totals{};
    std::uint32_t sessions = 0;
    record::Ledger ledger{}; ///< traffic by message and item type; empty unless enabled
    std::vector<filter::Expectation> expectations{};
    sink::DemoLosses demo_losses{};      ///< what demos could not record
    std::uint64_t capture_losses = 0;    ///< datagrams missing in the capture
    std::uint64_t messages_left_out = 0; ///< message records beyond the limit
    sink::FlightTally flight{};          ///< the flight recorder's totals
    /// Sessions that continue in another relay, for its observer.
    SessionCheckpoints checkpoints{};

    /// Adds the result of another worker. Precondition: `other` had the same expectations.
    void merge(WorkerResult other) {
        totals.merge(other.totals);
        sessions += other.sessions;
        ledger.merge(other.ledger);
        filter::merge(expectations, other.expectations);
        demo_losses.merge(other.demo_losses);
        capture_losses += other.capture_losses;
        messages_left_out += other.messages_left_out;
        flight.merge(other.flight);
        checkpoints.merge(other.checkpoints);
    }
};

} // namespace tw::pipeline
