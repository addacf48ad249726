#pragma once

#include "proxy/inspect/connection/packet_acceptance.h"
#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/message_reporter.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/server_silence.h"
#include "proxy/inspect/snapshots/snapshot_tracker.h"
#include "proxy/inspect/snapshots/stall_detector.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::inspect {

/// Stores the datagrams of a connection whose protocol is not known yet, so that they can be read
/// later. Only captures and taps need this, because the relay sees sessions from their start.
class DatagramsOfUnknownProtocol {
  public:
    /// The most stored datagrams: the inputs of two seconds. A running server answers sooner.
    static constexpr std::size_t kMaxDatagrams = 100;
    static constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;

    struct HeldDatagram {
        record::Timestamp time = 0;
        wire::Direction direction = wire::Direction::c2s;
        std::vector<std::byte> bytes;
    };

    void hold_datagram(record::Timestamp time, wire::Direction direction,
                       std::span<const std::byte> bytes) {
        held_datagrams_.push_back({time, direction, {bytes.begin(), bytes.end()}});
        held_bytes_ += bytes.size();
    }

    [[nodiscard]] bool empty() const { return held_datagrams_.empty(); }

    /// Whether a limit is reached. Then the datagrams must be read without waiting any longer.
    [[nodiscard]] bool is_full() const {
        return held_datagrams_.size() >= kMaxDatagrams || held_bytes_ >= kMaxBytes;
    }

    /// Removes all stored datagrams and returns them, oldest first.
    [[nodiscard]] std::vector<HeldDatagram> take_held_datagrams() {
        held_bytes_ = 0;
        return std::exchange(held_datagrams_, {});
    }

    [[nodiscard]] std::size_t memory_bytes() const {
        return held_bytes_ + held_datagrams_.capacity() * sizeof(HeldDatagram);
    }

  private:
    std::vector<HeldDatagram> held_datagrams_;
    std::size_t held_bytes_ = 0;
};

/// Counts the memory of all sessions and maps. Inspectors free memory when the limit is exceeded.
/// Thread-safe.
class MemoryBudget {
  public:
    /// Three games with 64 players on a large map fit into this limit. Each of them needs 160 MiB.
    static constexpr std::size_t kDefaultBytes = std::size_t{512} << 20U;

    explicit MemoryBudget(std::size_t limit = kDefaultBytes) : max_bytes_{limit} {}

    /// Changes the memory use of one session or map from `before` to `after` bytes.
    void update_used_bytes(std::size_t before, std::size_t after) noexcept {
        used_bytes_.fetch_add(after - before,
                              std::memory_order_relaxed); // wraps if `after` is smaller
    }

    [[nodiscard]] bool is_exceeded() const noexcept { return used_bytes() > max_bytes_; }

    /// Whether more than 7/8 of the limit are used. Once the limit is exceeded, memory is freed
    /// until this is false. Otherwise the limit would soon be exceeded again.
    [[nodiscard]] bool is_nearly_full() const noexcept {
        return used_bytes() > max_bytes_ - max_bytes_ / 8;
    }

    [[nodiscard]] std::size_t used_bytes() const noexcept {
        return used_bytes_.load(std::memory_order_relaxed);
    }

  private:
    std::size_t max_bytes_;
    std::atomic<std::size_t> used_bytes_{0};
};

/// Returns `value` as a shared value that counts as `bytes` in `budget` until it is destroyed.
/// `budget` must outlive the value; null: nothing is counted.
template <typename T>
[[nodiscard]] std::shared_ptr<const T> make_shared_in_budget(MemoryBudget* budget, T value,
                                                             std::size_t bytes) {
    if (budget == nullptr) {
        return std::make_shared<const T>(std::move(value));
    }
    budget->update_used_bytes(0, bytes);
    return {std::make_unique<const T>(std::move(value)).release(), [budget, bytes](const T* held) {
                std::default_delete<const T>{}(held);
                budget->update_used_bytes(bytes, 0);
            }};
}

struct Options {
    /// The known object types; must outlive the sessions.
    const snapshot::ObjectSet* objects = &snapshot::ObjectSet::standard();
    /// Messages that a mod's description adds; must outlive the sessions.
    const wire::MessageSet* described_messages = &wire::MessageSet::standard();
    /// Whether to emit a record for each message. cl_start_info is always recorded, because it
    /// contains the player's name.
    bool emits_message_records = true;
    /// Whether to learn the item sizes of a server that does not use the sizes agreed in the
    /// protocol, and to decode with the learned sizes.
    bool learn_sizes = false;
    /// Chat commands whose arguments may be shown, in addition to the built-in harmless ones; null:
    /// none. Must outlive the sessions.
    const wire::CommandNames* shown_commands = nullptr;
    /// True if no datagram can be missing, as in the relay. False for captures and taps, in which
    /// single datagrams, or all datagrams of one direction, may be missing.
    bool sees_all_datagrams = true;
    /// Item sizes learned by all sessions; null: each inspector has its own table. Must outlive the
    /// sessions.
    LearnedSizeTable* learned_sizes = nullptr;
    /// Memory limit of all sessions together; null: unlimited. Must outlive the sessions.
    MemoryBudget* memory_budget = nullptr;
    /// Snapshot memory shared by the sessions of one thread; null: each session has its own. Must
    /// outlive the sessions.
    snapshot::Arena* arena = nullptr;
    /// State shared by sessions of the same server; null: nothing is shared. Must outlive the
    /// sessions.
    ServerActivityTable* server_activities = nullptr;
    /// Observers of the sessions' traffic; must outlive the sessions.
    const Observers* observers = &Observers::none();
};

/// Tells whether the times of a session's datagrams are reliable enough to measure durations. If a
/// clock is set back, it is often set forward again soon, which looks like a pause.
class TimeReliability {
  public:
    /// Called for each datagram. Returns whether the time stepped back.
    [[nodiscard]] bool on_datagram(record::Timestamp time) {
        const bool steps_back = time < newest_time_ - kMaxDisorder;
        newest_time_ = steps_back ? time : std::max(newest_time_, time);
        num_unreliable_datagrams_ =
            steps_back ? kUnreliableDatagrams : num_unreliable_datagrams_ - !is_reliable();
        return steps_back;
    }

    [[nodiscard]] bool is_reliable() const { return num_unreliable_datagrams_ == 0; }

  private:
    /// Datagrams may be recorded out of order by up to this time (ns), because recorders read
    /// several network queues.
    static constexpr record::Timestamp kMaxDisorder = 100'000'000;
    /// The number of datagrams after a step back whose times are not reliable. A game sends this
    /// many in about 13 seconds.
    static constexpr int kUnreliableDatagrams = 1000;

    record::Timestamp newest_time_ = 0; ///< newest time since the last step back
    int num_unreliable_datagrams_ = 0;  ///< number of next datagrams whose times are not reliable
};

/// Buffers for decoding a datagram, shared by all sessions of a worker. Once the buffers are large
/// enough, decoding does not allocate memory.
struct DecodeBuffers {
    wire::PacketScratch packet_scratch;
    ChunkBuffer chunks;
    wire::DecodedFields decoded_fields;
    SnapshotWorkspace snapshot_buffers;
};

/// Inspects one session: all datagrams between a client and a server, in order of arrival.
class Session {
  public:
    Session(std::uint32_t number, std::string client, std::string server, const Options& options,
            MapSource& maps, record::RecordSink& sink);

    /// Sets the configured name of the server; the text must outlive all records. Must be called
    /// before any other function.
    void set_server_name(std::string_view name) { reporter_.set_server_name(name); }

    void open_session(record::Timestamp time);
    void on_datagram(record::Timestamp time, wire::Direction direction,
                     std::span<const std::byte> bytes, DecodeBuffers& workspace);
    /// Called when `lost` copies of datagrams were lost before inspection.
    void on_missed_datagrams(record::Timestamp time, std::uint64_t lost, std::string_view reason);

    /// Returns the state with which another observer process can continue this session.
    [[nodiscard]] SessionCheckpoint make_checkpoint() const {
        if (!is_connected_) {
            return is_close_reported_ ? SessionCheckpoint{.map = {}, .is_closed = true}
                                      : pending_checkpoint_.value_or(SessionCheckpoint{});
        }
        SessionCheckpoint checkpoint{.map = map_tracker_.announced_map()};
        snapshot_tracker_.save_to_checkpoint(checkpoint);
        acceptance_.save_to_checkpoint(checkpoint);
        return checkpoint;
    }

    /// Updates this session from the checkpoint of the observer process that has inspected the
    /// session so far. Precondition: checkpoint.is_consistent().
    void set_pending_checkpoint(SessionCheckpoint checkpoint) {
        pending_checkpoint_ = std::move(checkpoint);
    }

    /// Called when the relay has rewritten an input of the client to request a full snapshot.
    void on_full_snapshot_request(record::Timestamp time);

    void free_spare_memory() { snapshot_tracker_.free_spare_memory(); }

    /// Frees all memory that grows with the session's traffic. Then no snapshot can be verified
    /// until the next full snapshot.
    void free_traffic_memory(record::Timestamp time);

    /// Emits a summary record with the totals of the current connection.
    void emit_summary(record::Timestamp time) {
        reporter_.set_head(time, std::nullopt);
        reporter_.emit_summary();
    }

    /// Closes the session. `reason`: a reason that is not in the session's traffic, such as "idle"
    /// or "end of capture".
    void close_session(record::Timestamp time, std::string_view reason, DecodeBuffers& workspace);

    [[nodiscard]] std::uint32_t number() const { return reporter_.head().session; }

    /// Returns the time of the session's last event.
    [[nodiscard]] record::Timestamp last_time() const { return reporter_.head().time; }

    /// Returns the totals of all connections of the session.
    [[nodiscard]] record::SessionStats totals() const {
        record::SessionStats totals = totals_of_ended_connections_;
        totals.merge(reporter_.stats);
        return totals;
    }

    [[nodiscard]] const SnapshotTracker& snapshot_tracker() const { return snapshot_tracker_; }

    /// Returns the size of the memory that grows with the traffic, in bytes.
    [[nodiscard]] std::size_t memory_bytes() const {
        return snapshot_tracker_.memory_bytes() + map_tracker_.memory_bytes() +
               message_reporter_.memory_bytes() + held_datagrams_.memory_bytes();
    }

  private:
    void read_datagram(std::span<const std::byte> bytes, DecodeBuffers& workspace);
    /// Returns whether the datagram must wait, because its connection's protocol is not known yet.
    [[nodiscard]] bool must_hold_datagram(std::span<const std::byte> bytes,
                                          DecodeBuffers& workspace);
    /// Begins the connection, if `change` reports a new one, and reads the held datagrams.
    void read_held_datagrams(ConnectionChange change, DecodeBuffers& workspace);
    /// Reads the held datagrams although the protocol is not known yet. If they look like one side
    /// of a running connection, first begins that connection.
    void stop_holding_datagrams(DecodeBuffers& workspace);
    /// Reports, once per session, if no datagram of one side was ever seen.
    void report_missing_side();
    void check_server_silence(std::span<const std::byte> bytes, bool is_held);
    void on_packet(const wire::Packet& packet, std::span<const std::byte> bytes,
                   DecodeBuffers& workspace);
    void on_control(const wire::Packet& packet, DecodeBuffers& workspace);
    void on_chunk_packet(const wire::Packet& packet, DecodeBuffers& workspace);
    void read_accepted_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                              DecodeBuffers& workspace);
    [[nodiscard]] bool clear_mistaken_message_spec(wire::MessageHeader& head);
    void on_message(AcceptedMessage& message, bool compressed, DecodeBuffers& workspace);
    void handle_server_message(const wire::MessageHeader& head);
    void handle_client_message(const wire::MessageHeader& head);
    /// Begins a new connection unless `change` is `none`.
    void begin_connection(ConnectionChange change);
    void apply_pending_checkpoint();
    void apply_checkpoint(const SessionCheckpoint& checkpoint);
    void end_connection(std::string_view reason);

    const Observers* observers_;
    const wire::MessageSet* described_messages_; ///< messages that a mod's description adds
    Reporter reporter_;
    ServerSilenceDetector silence_detector_;
    PacketAcceptance acceptance_;
    MessageReporter message_reporter_;
    MapTracker map_tracker_;
    SnapshotTracker snapshot_tracker_;
    DatagramsOfUnknownProtocol held_datagrams_;
    TimeReliability time_reliability_;
    bool sees_all_datagrams_;
    bool is_missing_side_reported_ = false; ///< report_missing_side() has emitted its finding
    std::uint64_t num_datagrams_ = 0;       ///< number of datagrams seen so far
    /// Another observer process's checkpoint; nullopt after it was applied.
    std::optional<SessionCheckpoint> pending_checkpoint_;
    /// Totals of the session's earlier connections.
    record::SessionStats totals_of_ended_connections_;
    bool is_connected_ = false; ///< a connection is established and not closed yet
    bool is_close_reported_ = false;
};

} // namespace tw::inspect
