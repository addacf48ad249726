#pragma once

#include "proxy/record/records.h"
#include "snapshot/item.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tw::inspect {

/// Tells whether a server received a client's inputs, and when it read them. A server answers each
/// input for a newer tick with an INPUTTIMING. That message contains the tick, and how long before
/// this tick the server read the input. Therefore three cases can be told apart: the input waited
/// at the server, the answer was delayed, or the answer was lost.
///
/// Source: DDNet and Teeworlds CServer::ProcessClientPacket.
class InputTimingTracker {
  public:
    /// Called when the client sent an input for tick `intended`.
    void on_input(snapshot::Tick intended, record::Timestamp now);
    /// Called when the server answered the input for tick `intended` with an INPUTTIMING.
    /// `time_left`: how long before that tick the server read the input, in milliseconds.
    void on_answer(snapshot::Tick intended, std::int32_t time_left, record::Timestamp now);

    /// What happened to the inputs that a client sent in a given time.
    struct InputOutcome {
        unsigned num_inputs = 0;
        unsigned num_answered = 0;
        /// The longest time that an input waited at the server, minus the usual wait (ns).
        record::Timestamp longest_wait = 0;
        /// A later input was answered, so no further answers to these inputs will arrive.
        bool is_complete = false;
    };

    [[nodiscard]] InputOutcome outcome_of_inputs_between(record::Timestamp from,
                                                         record::Timestamp to) const;

    [[nodiscard]] bool has_answers() const { return min_round_trip_.minimum().has_value(); }

    /// Returns the shortest recent time from an input to its answer (ns); 0 if unknown.
    [[nodiscard]] record::Timestamp round_trip() const {
        return min_round_trip_.minimum().value_or(0);
    }

  private:
    /// The smallest of the values that were added in the last 10 to 20 seconds. Older values are
    /// forgotten, because the clocks of the server and of this computer drift apart.
    class RecentMinimum {
      public:
        void add_value(std::int64_t value, record::Timestamp now);
        [[nodiscard]] std::optional<std::int64_t> minimum() const;

      private:
        /// The length of a period (ns). minimum() covers one to two periods.
        static constexpr record::Timestamp kPeriod = 10'000'000'000;

        std::optional<std::int64_t> current_minimum_;
        std::optional<std::int64_t> previous_minimum_;
        record::Timestamp period_begin_ = 0;
    };

    struct Input {
        snapshot::Tick intended_tick = 0;
        record::Timestamp sent_time = 0; ///< when the client sent the input; 0: empty slot
        bool is_answered = false;
        /// The server's time when it read the input, minus this computer's time when it saw the
        /// input (ns). Only the difference between two such values is meaningful.
        std::int64_t read_offset = 0;
    };

    /// An input that follows a stored input within this time (ns) is not stored.
    static constexpr record::Timestamp kInputSpacing = 30'000'000;
    /// While the server is silent, kInputSpacing grows to the length of the silence divided by this
    /// number. Otherwise the first inputs of a long silence would be overwritten.
    static constexpr int kSpacingShare = 8;
    static constexpr std::size_t kStoredInputs = 64;

    /// Finds the stored input for tick `intended` that was not answered yet; null if none is
    /// stored. The server answers inputs in order. Therefore the search begins with the newest
    /// input, and ends at an answered input for an older tick.
    [[nodiscard]] Input* find_unanswered_input(snapshot::Tick intended);

    /// A ring buffer of the newest inputs; null before the first input.
    std::unique_ptr<std::array<Input, kStoredInputs>> inputs_;
    std::size_t num_inputs_ = 0;
    snapshot::Tick newest_intended_tick_ = 0; ///< the tick for which the newest input was meant
    record::Timestamp last_stored_time_ = 0;
    record::Timestamp last_answer_time_ = 0;
    /// Time of the newest input that was answered.
    record::Timestamp newest_answered_input_time_ = 0;
    RecentMinimum min_read_offset_;
    RecentMinimum min_round_trip_;
};

/// Tells whether and when a client acknowledged the server's vital chunks.
class ChunkAcknowledgements {
  public:
    void on_chunk(std::uint16_t sequence, record::Timestamp now);

    /// Called when the client acknowledged all chunks up to `ack`.
    void on_ack(std::uint16_t ack, record::Timestamp now) {
        if (num_unacknowledged_ != 0) {
            mark_acknowledged(ack, now);
        }
    }

    /// Whether the client acknowledged, before `to`, a chunk that the server sent after `from`.
    [[nodiscard]] bool was_any_chunk_acknowledged(record::Timestamp from,
                                                  record::Timestamp to) const;
    /// Whether the server sent a chunk between `from` and `to` that the client had not acknowledged
    /// at `by`.
    [[nodiscard]] bool has_unacknowledged_chunk(record::Timestamp from, record::Timestamp to,
                                                record::Timestamp by) const;

  private:
    struct Chunk {
        std::uint16_t sequence = 0;
        record::Timestamp sent_time = 0; ///< when the server sent the chunk; 0: empty slot
        record::Timestamp ack_time = 0;  ///< when the client acknowledged the chunk; 0: not yet
    };

    static constexpr std::size_t kStoredChunks = 16;

    void mark_acknowledged(std::uint16_t ack, record::Timestamp now);

    std::array<Chunk, kStoredChunks> chunks_{}; ///< ring buffer of the newest vital chunks
    std::size_t num_chunks_ = 0;
    std::size_t num_unacknowledged_ = 0; ///< number of unacknowledged chunks in the ring buffer
};

/// Why a client had no new snapshot to show.
enum class StallCause : std::uint8_t {
    rejected,            ///< the snapshots had errors, so the client rejected them
    unknown_base,        ///< the client did not have the base of the deltas
    late,                ///< no snapshot is missing, but snapshots arrived late
    server_silent,       ///< the server did not run, or sent nothing to any client
    slower_rate,         ///< the server sent snapshots less often than usual
    lost_before_twscope, ///< snapshots were lost between server and twscope
    lost_after_twscope,  ///< snapshots were lost between twscope and client
    unacknowledged,      ///< the client acknowledges no snapshot, though it seems to receive them
    client_silent,       ///< the client sends nothing, so the server makes one snapshot a second
    unknown,
    count,
};

[[nodiscard]] std::string_view stall_cause_name(StallCause cause);

/// The cause of a stall, as judged from the evidence.
struct StallVerdict {
    StallCause cause = StallCause::unknown;
    std::string_view other_causes{}; ///< names of other causes that fit the same evidence
    std::string detail{};            ///< the evidence, as a text for users
};

/// The evidence about a stall: a time in which the client got no usable snapshot.
struct StallEvidence {
    record::Timestamp duration = 0; ///< duration (ns): from one usable snapshot to the next
    bool has_ended = true;          ///< false: no usable snapshot has arrived yet
    bool is_late = false;           ///< no snapshot is missing, but the next one arrived late
    bool has_lost_data = false;     ///< during the stall, a snapshot part or vital chunk got lost
    bool has_client_inputs = true;  ///< the client sent inputs during the stall
    /// Before the stall, the client acknowledged a full snapshot.
    bool is_full_snapshot_acked = false;
    bool has_server_answered = false; ///< the server has answered earlier inputs of this session
    /// The answers to the inputs that the server should have answered during the stall.
    InputTimingTracker::InputOutcome input_outcome{};
    /// The longest time that an input sent during the stall waited at the server (ns).
    record::Timestamp longest_wait = 0;
    /// If the server sent nothing to any session during the stall, the number of sessions to which
    /// it was sending before; else nullopt.
    std::optional<std::size_t> num_quiet_sessions{};
    bool was_server_stopped = false; ///< another session proved that the server did not run
    /// Another session proved that the server's datagrams were lost.
    bool were_datagrams_lost = false;
};

/// Returns the cause if there is enough evidence, else nullopt. `is_final`: no more evidence will
/// arrive, so a cause is returned in any case; it may be `unknown`.
[[nodiscard]] std::optional<StallVerdict> judge_stall(const StallEvidence& evidence, bool is_final);

} // namespace tw::inspect
