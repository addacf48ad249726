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
#include <optional>
#include <unordered_map>
#include <vector>

namespace tw::pipeline {

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

/// What an observer that ends leaves of each session, by the session's number at the relay.
using SessionCheckpoints = std::unordered_map<std::uint32_t, inspect::SessionCheckpoint>;

/// They go by a file without a name that both relays hand on. More is not handed over: those left
/// out are joined midway.
inline constexpr std::size_t kMaxCheckpointBytes = std::size_t{256} << 20U;

/// Not valid, with errno, where there is none to be had.
[[nodiscard]] base::UniqueFd create_checkpoint_file();

/// Returns how many were written: all, unless they are too many or the file takes no more.
[[nodiscard]] std::size_t write_checkpoints(int file, const SessionCheckpoints& checkpoints);

/// The same, and logs what is left out; nothing where there is no file.
void hand_over_checkpoints(const base::UniqueFd& file, const SessionCheckpoints& checkpoints);

/// What was written there; nothing of one that is not sound, or of another version.
[[nodiscard]] SessionCheckpoints read_checkpoints(int file);

/// What came of a worker's run; merged, of all workers of a run. What a worker is to report at its
/// end is a line here, another in merge, and a third in Worker::take_result.
struct WorkerResult {
    record::SessionStats totals{};
    std::uint32_t sessions = 0;
    record::Ledger ledger{}; ///< where the bytes went; empty unless that was asked for
    std::vector<filter::Expectation> expectations{};
    sink::DemoLosses demo_losses{};      ///< what demos could not hold
    std::uint64_t capture_losses = 0;    ///< datagrams that the capture lacks
    std::uint64_t messages_left_out = 0; ///< of the records, by their limit
    sink::FlightTally flight{};          ///< what the flight recorder did
    SessionCheckpoints
        checkpoints{}; ///< of sessions that go on in another relay, for the observer there

    /// Precondition: `other` had the same expectations.
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
