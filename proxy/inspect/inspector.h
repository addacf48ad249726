#pragma once

#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/message_reporter.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/session.h"
#include "proxy/inspect/snapshots/snapshot_checks.h"
#include "snapshot/delta.h"
#include "snapshot/snapshot.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::inspect {

/// A session that is read from a demo. A demo has no packets, only maps, messages and one snapshot
/// per tick. It contains no checksums, so every snapshot that can be rebuilt counts as verified.
class DemoSession {
  public:
    DemoSession(std::uint32_t number, std::string client, std::string server,
                const Options& options, MapSource& maps, record::RecordSink& sink,
                snapshot::Dialect dialect);

    void open_session(record::Timestamp time);
    /// Sets the map that the demo names. `file`: the map file; empty if the demo lacks it.
    void set_map(const MapAnnouncement& announced, std::vector<std::byte> file);

    void set_record_time(record::Timestamp time) { reporter_.set_head(time, wire::Direction::s2c); }

    /// Inspects a full snapshot. `bytes`: its size after decompression.
    void on_full_snapshot(snapshot::Tick tick, std::size_t bytes,
                          const snapshot::SnapshotView& items);
    /// Applies a delta to the previous snapshot and inspects the result. Returns false if the delta
    /// cannot be applied. In this case, the next delta has the same base.
    bool on_delta(snapshot::Tick tick, std::span<const std::byte> body);
    void on_unchanged_snapshot(snapshot::Tick tick);
    /// Reports a full snapshot that cannot be decoded. Demo players skip it. `finding`: the error.
    void on_invalid_snapshot(snapshot::Tick tick, std::size_t bytes, record::FindingRecord finding);
    /// Inspects a message of the server. `payload` may end with up to three bytes of padding.
    void on_message(std::span<const std::byte> payload, wire::DecodedFields& fields);

    void report_finding(const record::FindingRecord& finding) { reporter_.report_finding(finding); }

    void report_finding_once(const record::FindingRecord& finding) {
        reporter_.report_finding_once(finding);
    }

    void close_session(record::Timestamp time, std::string_view reason);

    [[nodiscard]] bool is_seven() const {
        return item_types_.dialect() == snapshot::Dialect::seven;
    }

    [[nodiscard]] bool has_snapshot() const { return current_tick_ != snapshot::kNoBase; }

    [[nodiscard]] const record::SessionStats& totals() const { return reporter_.stats; }

  private:
    [[nodiscard]] std::string_view protocol_name() const { return is_seven() ? "0.7" : "0.6"; }

    [[nodiscard]] record::SnapshotRecord
    begin_snapshot_record(snapshot::Tick tick, snapshot::Tick base, std::size_t bytes);
    void accept_snapshot(record::SnapshotRecord& record, const snapshot::SnapshotView& items);
    void read_players(const snapshot::SnapshotView& items);
    void reject_snapshot(record::SnapshotRecord& record, record::FindingRecord finding);

    Reporter reporter_;
    MessageReporter message_reporter_;
    const wire::MessageSet* described_messages_; ///< messages that a mod's description adds
    MapTracker map_tracker_;
    record::ItemTypes item_types_;
    record::Roster roster_; ///< the players; used for 0.7 only
    SnapshotChecks snapshot_checks_;
    snapshot::AgreedSizes item_sizes_;
    snapshot::Delta decoded_delta_;
    snapshot::Snapshot current_snapshot_;
    snapshot::Snapshot next_snapshot_;
    /// Tick of `current_snapshot_`; kNoBase before the first snapshot.
    snapshot::Tick current_tick_ = snapshot::kNoBase;
    std::uint64_t num_snapshots_ = 0;
};

/// Inspects all sessions of one worker. Callers pass each datagram with its time, session and
/// direction. The same calls always give the same records. If the memory budget is exceeded, all
/// sessions first free spare memory. If that is not enough, sessions lose all their state,
/// beginning with the session that has been silent the longest.
class Inspector {
  public:
    /// `numbers`: the counter of session numbers, which all workers share.
    Inspector(const Options& options, MapSource& maps, record::RecordSink& sink,
              std::atomic<std::uint32_t>& numbers)
        : options_{options}, map_source_{&maps}, sink_{&sink}, newest_session_number_{&numbers} {
        options_.arena = &snapshot_arena_;
        options_.server_activities = &server_activities_;
        if (options_.learned_sizes == nullptr) {
            own_learned_sizes_ = std::make_unique<LearnedSizeTable>();
            options_.learned_sizes = own_learned_sizes_.get();
        }
    }

    ~Inspector();
    Inspector(const Inspector&) = delete;
    Inspector& operator=(const Inspector&) = delete;

    /// Must be called if the source is a capture or a tap. From then on, single datagrams or all
    /// datagrams of one direction may be missing.
    void expect_missing_datagrams() { options_.sees_all_datagrams = false; }

    /// Opens a session. `key`: identifies the session in later calls. No other open session may
    /// have this key. `checkpoint`: the session's state from the previous observer process.
    /// is_consistent() must hold for it. If its is_closed is true, the session opens at its next
    /// datagram and reports nothing before. `server_name`: the configured name of the server, or
    /// empty. The text must outlive all records.
    void on_open(std::uint64_t key, record::Timestamp time, std::string client, std::string server,
                 std::optional<SessionCheckpoint> checkpoint = std::nullopt,
                 std::string_view server_name = {});
    /// Returns the state with which another observer process can continue the session; nullopt if
    /// no open session has this key.
    [[nodiscard]] std::optional<SessionCheckpoint> make_checkpoint(std::uint64_t key) const;
    /// Returns the encoded checkpoint of the session whose datagram is being read; empty if that
    /// session has no running connection. Observers may call this function (see Observer).
    [[nodiscard]] std::vector<std::byte> encode_current_checkpoint() const;
    /// Updates the session from the checkpoint of the observer process that has inspected the
    /// session so far. Precondition: checkpoint.is_consistent().
    void restore_session(std::uint64_t key, SessionCheckpoint checkpoint);
    /// Inspects a datagram of the session. `next`: the datagram of the next call, for any session;
    /// empty if unknown. Decompressing both datagrams together is faster. The bytes of both must
    /// not change until the next call.
    void on_datagram(std::uint64_t key, record::Timestamp time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next = {});

    /// Must be called if the datagram `next` of on_datagram() will not be inspected, before its
    /// memory is reused.
    void forget_next_datagram() { decode_buffers_.packet_scratch.begin_datagram({}, {}); }

    /// Called when `lost` copies of datagrams were lost before inspection. `key`: the session of
    /// the lost datagrams; 0 if unknown. `reason`: why they were lost, for the finding.
    void on_missed_datagrams(std::uint64_t key, record::Timestamp time, std::uint64_t lost,
                             std::string_view reason = "ring_full");
    /// Called when the relay has rewritten an input of the client to request a full snapshot.
    void on_full_snapshot_request(std::uint64_t key, record::Timestamp time);
    void on_close(std::uint64_t key, record::Timestamp time, std::string_view reason);
    /// Whether the relay should request a full snapshot, because no snapshot of the session can be
    /// rebuilt without it. Always false for 0.7, because the relay rewrites inputs of 0.6 only.
    [[nodiscard]] bool wants_full_snapshot(std::uint64_t key) const;
    /// Begins the session of a demo. end_demo() ends it.
    [[nodiscard]] std::unique_ptr<DemoSession> begin_demo(record::Timestamp time,
                                                          std::string client, std::string server,
                                                          snapshot::Dialect dialect);
    void end_demo(DemoSession& playback, record::Timestamp time, std::string_view reason);

    /// Emits a summary of each open session. A summary has the time of the session's last event,
    /// because datagrams that are not inspected yet may be older than the current time.
    void emit_summaries();
    /// Closes all open sessions, in the order in which they were opened.
    void close_all_sessions(record::Timestamp time, std::string_view reason);

    /// Returns the sum of the statistics of all sessions of this worker, including open ones.
    [[nodiscard]] record::SessionStats totals() const;

    /// Calls `see` with the number and totals of each open session, in the order in which the
    /// sessions were opened.
    void for_each_session(
        const std::function<void(std::uint32_t number, const record::SessionStats&)>& see) const;

    [[nodiscard]] std::uint32_t num_sessions_opened() const { return num_sessions_opened_; }

  private:
    struct OpenSession {
        std::unique_ptr<Session> session;
        record::Timestamp last_datagram_time = 0;
        std::size_t charged_bytes = 0; ///< bytes charged to the memory budget
        /// Number of datagrams until `charged_bytes` is updated.
        std::uint32_t datagrams_until_charge = 1;
    };

    /// A session that is closed according to another observer process, and that has had no datagram
    /// since then.
    struct ClosedSession {
        std::string client;
        std::string server;
        std::string_view server_name;
    };

    /// Returns the keys of the open sessions, in the order in which the sessions were opened.
    [[nodiscard]] std::vector<std::uint64_t> open_session_keys() const;
    void update_memory_charge(OpenSession& watched) const;
    void release_memory_charge(OpenSession& watched) const;
    void free_memory(record::Timestamp time);

    Options options_;
    MapSource* map_source_;
    record::RecordSink* sink_;
    std::atomic<std::uint32_t>* newest_session_number_;
    DecodeBuffers decode_buffers_;
    snapshot::Arena snapshot_arena_;
    ServerActivityTable server_activities_;
    /// The item sizes that sessions learned; null if this inspector shares the sizes of other
    /// inspectors.
    std::unique_ptr<LearnedSizeTable> own_learned_sizes_;
    std::unordered_map<std::uint64_t, OpenSession> open_sessions_;
    std::unordered_map<std::uint64_t, ClosedSession> sessions_closed_elsewhere_;
    record::SessionStats totals_of_closed_sessions_;
    std::uint32_t num_sessions_opened_ = 0;
    const Session* current_session_ = nullptr;
};

} // namespace tw::inspect
