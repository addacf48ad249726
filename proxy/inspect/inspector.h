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

/// A session read from a demo: it has no packets, only maps, messages, and one snapshot per tick.
/// Demos hold no checksums, so every snapshot that can be rebuilt counts as verified.
class Playback {
  public:
    Playback(std::uint32_t number, std::string client, std::string server, const Options& options,
             MapSource& maps, record::RecordSink& sink, snapshot::Dialect dialect);

    void open(record::Timestamp time);
    /// The demo names its map. `file`: the map file; empty if the demo does not contain it.
    void on_map(const MapAnnouncement& announced, std::vector<std::byte> file);

    /// Sets the time of the events that follow.
    void on_time(record::Timestamp time) { reporter_.begin(time, wire::Direction::s2c); }

    /// A full snapshot. `bytes`: its size after decompression.
    void on_full(snapshot::Tick tick, std::size_t bytes, const snapshot::SnapshotView& items);
    /// A delta to the previous snapshot. Returns false if the delta cannot be applied; the previous
    /// snapshot then stays the base.
    bool on_delta(snapshot::Tick tick, std::span<const std::byte> body);
    /// A tick without changes since the previous snapshot.
    void on_unchanged(snapshot::Tick tick);
    /// A broken full snapshot, which demo players skip. `finding` says what is wrong with it.
    void on_invalid(snapshot::Tick tick, std::size_t bytes, record::FindingRecord finding);
    /// A message of the server. Up to three padding zeros may follow it.
    void on_message(std::span<const std::byte> payload, wire::DecodedFields& fields);

    void on_finding(const record::FindingRecord& finding) { reporter_.finding(finding); }

    /// Counts the finding each time, but emits only the first one with its id.
    void on_finding_once(const record::FindingRecord& finding) { reporter_.finding_once(finding); }

    void close(record::Timestamp time, std::string_view reason);

    [[nodiscard]] bool is_seven() const { return types_.dialect() == snapshot::Dialect::seven; }

    [[nodiscard]] bool has_snapshot() const { return base_ != snapshot::kNoBase; }

    [[nodiscard]] const record::SessionStats& totals() const { return reporter_.stats; }

  private:
    void emit_session(record::SessionEvent event, std::string_view reason = {});
    [[nodiscard]] record::SnapshotRecord begin_snapshot(snapshot::Tick tick, snapshot::Tick base,
                                                        std::size_t bytes);
    void accept(record::SnapshotRecord& record, const snapshot::SnapshotView& items);
    void learn_players(const snapshot::SnapshotView& items);
    void refuse(record::SnapshotRecord& record, record::FindingRecord finding);

    std::string client_;
    std::string server_;
    Reporter reporter_;
    MessageReporter messages_;
    const wire::MessageSet* described_; ///< messages that a mod describes
    MapTracker maps_;
    std::shared_ptr<const record::World> world_;
    record::TypeNames types_;
    record::Roster roster_; ///< the players; used for 0.7 only
    SnapshotChecks checks_;
    snapshot::AgreedSizes sizes_;
    snapshot::Delta delta_;
    snapshot::Snapshot now_;
    snapshot::Snapshot next_;
    snapshot::Tick base_ = snapshot::kNoBase; ///< tick of `now_`; kNoBase before the first snapshot
    std::uint64_t ordinal_ = 0;
};

/// All sessions of one worker. Live traffic, captures and tests call it with time, session,
/// direction and bytes; equal calls give equal records. If the memory budget is exceeded, all
/// sessions first free memory that they can do without. Then whole sessions lose their state,
/// beginning with those silent for the longest time.
class Inspector {
  public:
    /// `numbers`: the number of the session opened last; shared by all workers of a run.
    Inspector(const Options& options, MapSource& maps, record::RecordSink& sink,
              std::atomic<std::uint32_t>& numbers)
        : options_{options}, maps_{&maps}, sink_{&sink}, numbers_{&numbers} {
        options_.arena = &arena_;
        options_.servers = &servers_;
        if (options_.learned == nullptr) {
            own_learned_ = std::make_unique<LearnedSizes>();
            options_.learned = own_learned_.get();
        }
    }

    ~Inspector();
    Inspector(const Inspector&) = delete;
    Inspector& operator=(const Inspector&) = delete;
    Inspector(Inspector&&) = delete;
    Inspector& operator=(Inspector&&) = delete;

    /// From now on, datagrams may be missing, or all of one direction: the source is a capture or a
    /// tap.
    void expect_missing() { options_.sees_all = false; }

    /// Opens a session. `key` identifies it in later calls; no other open session may have this
    /// key. `checkpoint`: the previous observer's state of the session; it must be sound.
    /// `server_name`: configured name of the server, which must live as long as the run; empty if
    /// it has none.
    void on_open(std::uint64_t key, record::Timestamp time, std::string client, std::string server,
                 std::optional<SessionCheckpoint> checkpoint = std::nullopt,
                 std::string_view server_name = {});
    /// Returns the state that another observer needs to continue this session; nullopt if no open
    /// session has this key.
    [[nodiscard]] std::optional<SessionCheckpoint> save(std::uint64_t key) const;
    /// Returns the encoded checkpoint of the session whose datagram is being read; empty if it has
    /// no running connection. To be called by the session's observers.
    [[nodiscard]] std::vector<std::byte> encode_current_checkpoint() const;
    /// Another observer watched this session until now: adds its checkpoint's newer state to the
    /// session. `checkpoint` must be sound.
    void restore(std::uint64_t key, SessionCheckpoint checkpoint);
    /// Reads a datagram of the session. `next`: the datagram of the next call, of any session;
    /// empty if not known yet. It is decompressed together with this one, which is faster. The
    /// bytes of both datagrams must stay in place until the next call.
    void on_datagram(std::uint64_t key, record::Timestamp time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next = {});

    /// Forgets the datagram announced as `next`: it will not be passed, and its memory may be
    /// reused.
    void on_passed_over() { workspace_.packet.begin({}, {}); }

    /// Copies of datagrams were lost before inspection: of one session, or of unknown sessions if
    /// `key` is 0. `reason` goes into the finding.
    void on_gap(std::uint64_t key, record::Timestamp time, std::uint64_t lost,
                std::string_view reason = "ring_full");
    /// The relay rewrote an input of the client to request a full snapshot.
    void on_resync(std::uint64_t key, record::Timestamp time);
    void on_close(std::uint64_t key, record::Timestamp time, std::string_view reason);
    /// Whether the relay should request a full snapshot: no snapshot can be rebuilt before the next
    /// full one, and the session speaks 0.6, so that the relay can rewrite an input to request it.
    [[nodiscard]] bool wants_resync(std::uint64_t key) const;
    /// Begins the session of a demo; end_demo ends it.
    [[nodiscard]] std::unique_ptr<Playback> begin_demo(record::Timestamp time, std::string client,
                                                       std::string server,
                                                       snapshot::Dialect dialect);
    void end_demo(Playback& playback, record::Timestamp time, std::string_view reason);

    /// Writes a summary record for each open session.
    void report(record::Timestamp time);
    /// Closes all open sessions, in the order they were opened.
    void finish(record::Timestamp time, std::string_view reason);

    /// Totals of all sessions of this worker, including open ones.
    [[nodiscard]] record::SessionStats totals() const;

    /// Calls `see` for each open session with its totals so far, in the order they were opened.
    void
    visit(const std::function<void(std::uint32_t number, const record::SessionStats&)>& see) const;

    [[nodiscard]] std::size_t open_sessions() const { return sessions_.size(); }

    [[nodiscard]] std::uint32_t sessions_seen() const { return seen_; }

  private:
    struct Watched {
        std::unique_ptr<Session> session;
        record::Timestamp heard = 0;    ///< time of the session's last datagram
        std::size_t charged = 0;        ///< bytes charged to the memory budget
        std::uint32_t until_charge = 1; ///< datagrams until the next charge
    };

    /// Keys of the open sessions, in the order they were opened.
    [[nodiscard]] std::vector<std::uint64_t> keys() const;
    void charge(Watched& watched) const;
    void release(Watched& watched) const;
    void shed(record::Timestamp time);

    Options options_;
    MapSource* maps_;
    record::RecordSink* sink_;
    std::atomic<std::uint32_t>* numbers_;
    Workspace workspace_;
    snapshot::Arena arena_;
    SharedServers servers_;
    /// This inspector's own table of learned sizes; null if it shares one with other inspectors.
    std::unique_ptr<LearnedSizes> own_learned_;
    std::unordered_map<std::uint64_t, Watched> sessions_;
    record::SessionStats closed_;
    std::uint32_t seen_ = 0;
    const Session* current_session_ = nullptr; ///< the session whose datagram is being read
};

} // namespace tw::inspect
