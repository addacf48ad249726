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

/// Tells whether a server received a client's inputs, and when it read them. A server answers each input
/// for a newer tick with an INPUTTIMING. That message contains the tick, and how long before this tick
/// the server read the input. So three cases can be told apart: the input waited at the server, the
/// answer was delayed, or the answer was lost.
///
/// Source: DDNet and Teeworlds CServer::ProcessClientPacket.
class InputReceipts {
  public:
    /// The client sent an input for tick `intended`.
    void on_input(snapshot::Tick intended, record::Timestamp now);
    /// The server answered the input for tick `intended`. `time_left`: in milliseconds, as in INPUTTIMING.
    void on_answer(snapshot::Tick intended, std::int32_t time_left, record::Timestamp now);

    /// What happened to the inputs of a time span.
    struct Outcome {
        unsigned inputs = 0;
        unsigned answered = 0;
        /// The longest time that an input waited at the server, minus the usual wait (ns).
        record::Timestamp longest_wait = 0;
        /// A later input was answered, so no further answers to these inputs will arrive.
        bool is_complete = false;
    };

    [[nodiscard]] Outcome outcome(record::Timestamp from, record::Timestamp to) const;

    [[nodiscard]] bool is_answered() const { return round_trip_.minimum().has_value(); }

    /// The shortest time from an input to its answer (ns); 0 if unknown.
    [[nodiscard]] record::Timestamp round_trip() const { return round_trip_.minimum().value_or(0); }

    /// Ticks start again, or copies of datagrams were lost.
    void restart() { *this = {}; }

  private:
    /// The least value of the last 10 to 20 seconds. Older values are forgotten, because the clocks of
    /// server and observer drift.
    class RecentMinimum {
      public:
        void add(std::int64_t value, record::Timestamp now);
        [[nodiscard]] std::optional<std::int64_t> minimum() const;

      private:
        static constexpr record::Timestamp kPeriod = 10'000'000'000; ///< ns

        std::optional<std::int64_t> current_;
        std::optional<std::int64_t> before_;
        record::Timestamp began_ = 0;
    };

    struct Input {
        snapshot::Tick intended = 0;
        record::Timestamp sent = 0; ///< 0: empty slot
        bool is_answered = false;
        /// The time of the server's clock at which it read the input, minus the time at which the input
        /// was seen here (ns). Only differences between such values are meaningful.
        std::int64_t read_after = 0;
    };

    /// An input that follows a stored input within this time (ns) is not stored. The time grows while the
    /// server sends nothing, so that the first inputs after its last datagram are not overwritten.
    static constexpr record::Timestamp kInputSpacing = 30'000'000;
    static constexpr int kSpacingShare = 8;
    static constexpr std::size_t kInputs = 64;

    /// Finds the stored input that an answer belongs to; null if there is none. Inputs are answered in
    /// order, so the search goes back from the newest one, and ends at an answered one for an older tick.
    [[nodiscard]] Input* find_unanswered(snapshot::Tick intended);

    /// A ring buffer of the last inputs; null before the first one.
    std::unique_ptr<std::array<Input, kInputs>> inputs_;
    std::size_t num_inputs_ = 0;
    snapshot::Tick intended_ = 0; ///< the tick that the last input was for
    record::Timestamp kept_ = 0;
    record::Timestamp answered_ = 0;        ///< time of the server's last answer
    record::Timestamp newest_answered_ = 0; ///< time of the newest input that was answered
    RecentMinimum read_after_;
    RecentMinimum round_trip_;
};

/// Tells whether a client received the server's vital chunks that were seen here, and when the
/// client acknowledged them.
class ChunkReceipts {
  public:
    void on_chunk(std::uint16_t sequence, record::Timestamp now);

    /// The client acknowledged all chunks up to `ack`.
    void on_ack(std::uint16_t ack, record::Timestamp now) {
        if (num_open_ != 0) {
            close(ack, now);
        }
    }

    /// Whether the client acknowledged, before `to`, a chunk that the server sent after `from`.
    [[nodiscard]] bool acknowledged_any(record::Timestamp from, record::Timestamp to) const;
    /// Whether the server sent a chunk between `from` and `to` that the client had not acknowledged at
    /// `by`.
    [[nodiscard]] bool left_unacknowledged(record::Timestamp from, record::Timestamp to,
                                           record::Timestamp by) const;

    void restart() { *this = {}; }

  private:
    struct Chunk {
        std::uint16_t sequence = 0;
        record::Timestamp sent = 0;  ///< 0: empty slot
        record::Timestamp acked = 0; ///< 0: not acknowledged
    };

    static constexpr std::size_t kChunks = 16;

    void close(std::uint16_t ack, record::Timestamp now);

    std::array<Chunk, kChunks> chunks_{}; ///< a ring buffer of the server's last vital chunks
    std::size_t num_chunks_ = 0;
    std::size_t num_open_ = 0; ///< unacknowledged chunks in the ring buffer
};

/// Why a client had no new snapshot to show.
enum class StallCause : std::uint8_t {
    rejected,       ///< the client had to reject the snapshots
    unknown_base,   ///< the client did not have the base of the deltas
    late,           ///< no snapshot is missing, but snapshots arrived late
    server_silent,  ///< the server did not run, or sent nothing to any client
    slower_rate,    ///< the server sent snapshots less often than usual
    lost,           ///< snapshots were lost between server and twscope
    lost_behind,    ///< snapshots were lost between twscope and client
    unacknowledged, ///< the client acknowledges no snapshot, though it seems to receive them
    client_silent,  ///< the client sends nothing, so the server makes one snapshot a second
    unknown,
    count,
};

[[nodiscard]] std::string_view stall_cause_name(StallCause cause);

/// The cause of a stall, as judged from the evidence.
struct StallVerdict {
    StallCause cause = StallCause::unknown;
    std::string_view rivals{}; ///< names of other causes that fit the same evidence
    std::string detail{};      ///< the evidence
};

/// The evidence about a stall, which is a time in which no usable snapshot was seen here.
struct StallEvidence {
    record::Timestamp time = 0; ///< duration (ns): from the last usable snapshot to the next
    bool has_ended = true;      ///< false: no usable snapshot has arrived yet
    bool is_late = false;       ///< the snapshot that ended the stall directly follows the last one
    bool has_hole = false;      ///< a snapshot part or a vital chunk of the stall's time is missing
    bool has_client = true;     ///< the client's inputs are seen here
    bool lacks_base = false;    ///< the server ignored an acknowledgement of the client
    bool is_answering = false;  ///< the server has answered earlier inputs of this session
    /// The inputs whose answers the server sent during the stall.
    InputReceipts::Outcome receipts{};
    /// The longest time that an input sent during the stall waited at the server (ns).
    record::Timestamp longest_wait = 0;
    /// If the server sent nothing to any session, the number of sessions to which it was sending before.
    std::optional<std::size_t> quiet_sessions{};
    bool was_stopped = false; ///< another session proved that the server did not run
    bool was_cut_off = false; ///< another session proved that the server's datagrams were lost
};

/// Returns the cause if there is enough evidence, else nullopt. `is_final`: no more evidence will arrive,
/// so a cause is returned in any case; it may be `unknown`.
[[nodiscard]] std::optional<StallVerdict> judge_stall(const StallEvidence& evidence, bool is_final);

} // namespace tw::inspect
