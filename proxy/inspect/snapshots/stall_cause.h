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

/// Whether a server got a client's inputs, and when it read them. A server answers every input that is
/// for a later tick than the one before it: an INPUTTIMING names that tick, and by the server's clock
/// how long before the tick it read the input. So an input that had to wait for the server is told from
/// an answer that had to wait on the way, and both from an answer that was lost.
///
/// Source: DDNet and Teeworlds CServer::ProcessClientPacket; protocol sheet, section 9.1.
class InputReceipts {
  public:
    /// The client sends an input for this tick.
    void on_input(snapshot::Tick intended, record::Timestamp now);
    /// The server answers it; `time_left`: milliseconds.
    void on_answer(snapshot::Tick intended, std::int32_t time_left, record::Timestamp now);

    /// What became of the inputs that passed in a time.
    struct Outcome {
        unsigned inputs = 0;
        unsigned answered = 0;
        record::Timestamp longest_wait = 0; ///< until the server read one, beyond the usual
        bool is_complete = false; ///< an input after them was answered: no more answers come
    };

    [[nodiscard]] Outcome outcome(record::Timestamp from, record::Timestamp to) const;

    [[nodiscard]] bool is_answered() const { return round_trip_.least().has_value(); }

    /// From an input to its answer, at best; 0 if unknown.
    [[nodiscard]] record::Timestamp round_trip() const { return round_trip_.least().value_or(0); }

    /// Ticks start again, or copies were lost.
    void restart() { *this = {}; }

  private:
    /// The least of the last 10 to 20 seconds: the clocks of server and observer drift.
    class RecentLeast {
      public:
        void add(std::int64_t value, record::Timestamp now);
        [[nodiscard]] std::optional<std::int64_t> least() const;

      private:
        static constexpr record::Timestamp kPeriod = 10'000'000'000; ///< ns

        std::optional<std::int64_t> current_;
        std::optional<std::int64_t> before_;
        record::Timestamp began_ = 0;
    };

    struct Input {
        snapshot::Tick intended = 0;
        record::Timestamp sent = 0; ///< 0: none
        bool is_answered = false;
        std::int64_t read_after = 0; ///< ns from passing here to being read, by the server's clock
    };

    /// Of inputs closer together than this only the first is kept. While the server sends nothing they
    /// may be farther apart, so that the first ones after its last datagram stay known.
    static constexpr record::Timestamp kSpacing = 30'000'000; ///< ns
    static constexpr int kSpacingShare = 8;
    static constexpr std::size_t kInputs = 64;

    std::unique_ptr<std::array<Input, kInputs>> inputs_; ///< in a ring; null: none yet
    std::size_t num_inputs_ = 0;
    snapshot::Tick intended_ = 0; ///< the tick that the last input was for
    record::Timestamp kept_ = 0;
    record::Timestamp answered_ = 0;        ///< when the last answer came
    record::Timestamp newest_answered_ = 0; ///< when the newest input that was answered was sent
    RecentLeast read_after_;
    RecentLeast round_trip_;
};

/// Whether a client got the server's reliable chunks that passed here, and when it said so.
class ChunkReceipts {
  public:
    void on_chunk(std::uint16_t sequence, record::Timestamp now);

    /// The client has all chunks up to this sequence.
    void on_ack(std::uint16_t ack, record::Timestamp now) {
        if (num_open_ != 0) {
            close(ack, now);
        }
    }

    /// Whether the client got a chunk that passed after `from`, and said so before `to`.
    [[nodiscard]] bool got_any(record::Timestamp from, record::Timestamp to) const;
    /// Whether a chunk passed between `from` and `to`, and the client did not say before `by` that it
    /// has it.
    [[nodiscard]] bool missed_any(record::Timestamp from, record::Timestamp to,
                                  record::Timestamp by) const;

    void restart() { *this = {}; }

  private:
    struct Chunk {
        std::uint16_t sequence = 0;
        record::Timestamp sent = 0;  ///< 0: none
        record::Timestamp acked = 0; ///< 0: not yet
    };

    static constexpr std::size_t kChunks = 16;

    void close(std::uint16_t ack, record::Timestamp now);

    std::array<Chunk, kChunks> chunks_{}; ///< in a ring
    std::size_t num_chunks_ = 0;
    std::size_t num_open_ = 0; ///< chunks in the ring that are not acknowledged
};

/// Why a client had nothing new to show.
enum class StallCause : std::uint8_t {
    rejected,       ///< snapshots came that the client had to reject
    unknown_base,   ///< snapshots came whose base the client does not have
    late,           ///< no snapshot is missing, they came late
    server_silent,  ///< the server did not run, or sent nothing to anybody
    slower_rate,    ///< the server made no snapshot for this client
    lost,           ///< between server and twscope
    lost_behind,    ///< between twscope and client
    unacknowledged, ///< the client acknowledges none, and does not seem to have lost them
    client_silent,  ///< the client sends nothing, so the server makes one snapshot a second
    unknown,
    count,
};

[[nodiscard]] std::string_view stall_cause_name(StallCause cause);

/// What the traffic says about a stall.
struct StallVerdict {
    StallCause cause = StallCause::unknown;
    std::string_view rivals{}; ///< other causes that the same evidence fits
    std::string detail{};      ///< the evidence
};

/// What is known of a time in which no usable snapshot passed here.
struct StallEvidence {
    record::Timestamp time = 0; ///< from the last snapshot to the next
    bool has_ended = true;      ///< a snapshot came at last
    bool is_late = false;       ///< it is the next one: none is missing
    bool has_hole = false;      ///< a part or a reliable chunk of that time is missing
    bool has_client = true;     ///< the client's inputs pass here
    bool lacks_base = false;    ///< the server goes on without the acknowledgement that passed here
    bool is_answering = false;  ///< the server has answered inputs of this session before
    InputReceipts::Outcome receipts{};  ///< inputs whose answers the missing datagrams held
    record::Timestamp longest_wait = 0; ///< of an input of that time, for the server
    std::optional<std::size_t> quiet_sessions{}; ///< the server sent nothing to any of so many
    bool was_stopped = false; ///< the server did not run, as another session has shown
    bool was_cut_off = false; ///< its datagrams were lost, as another session has shown
};

/// Says why, as soon as the evidence decides. `is_final`: no more evidence comes; then the verdict may
/// be that nothing decides.
[[nodiscard]] std::optional<StallVerdict> judge_stall(const StallEvidence& evidence, bool is_final);

} // namespace tw::inspect
