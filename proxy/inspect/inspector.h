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

/// A session that comes without its packets, from a demo: a map, and by tick what its recorder
/// had. It has no checksums, so what can be applied is right.
class Playback {
  public:
    Playback(std::uint32_t number, std::string client, std::string server, const Options& options,
             MapSource& maps, record::RecordSink& sink, snapshot::Dialect dialect);

    void open(record::Timestamp time);
    /// `file`: empty where the demo has none.
    void on_map(const MapAnnouncement& announced, std::vector<std::byte> file);

    /// What follows happened then.
    void on_time(record::Timestamp time) { reporter_.begin(time, wire::Direction::s2c); }

    /// `bytes`: what it took, decompressed.
    void on_full(snapshot::Tick tick, std::size_t bytes, const snapshot::SnapshotView& items);
    /// A delta to the snapshot before it. False: it cannot be used, and that one stays.
    bool on_delta(snapshot::Tick tick, std::span<const std::byte> body);
    /// The tick shows what the one before it showed.
    void on_unchanged(snapshot::Tick tick);
    /// A full snapshot that players skip.
    void on_invalid(snapshot::Tick tick, std::size_t bytes, record::FindingRecord finding);
    /// A message of the server, with up to three zeros behind it.
    void on_message(std::span<const std::byte> payload, wire::DecodedFields& fields);

    void on_finding(const record::FindingRecord& finding) { reporter_.finding(finding); }

    /// Counts it every time, and passes on the first.
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
    const wire::MessageSet* described_; ///< by a mod
    MapTracker maps_;
    std::shared_ptr<const record::World> world_;
    record::TypeNames types_;
    record::Roster roster_; ///< of 0.7
    SnapshotChecks checks_;
    snapshot::AgreedSizes sizes_;
    snapshot::Delta delta_;
    snapshot::Snapshot now_;
    snapshot::Snapshot next_;
    snapshot::Tick base_ = snapshot::kNoBase; ///< tick of `now_`; none yet
    std::uint64_t ordinal_ = 0;
};

/// All sessions of one worker. Live traffic, captures and tests enter here, as time, session,
/// direction and bytes; the same bytes give the same records. Above the budget of memory, sessions
/// give back what they can do without, and then all, those that were silent for longest first.
class Inspector {
  public:
    /// `numbers` counts sessions over all workers of a run.
    Inspector(const Options& options, MapSource& maps, record::RecordSink& sink,
              std::atomic<std::uint32_t>& numbers)
        : options_{options}, maps_{&maps}, sink_{&sink}, numbers_{&numbers} {
        options_.arena = &arena_;
        options_.servers = &servers_;
        if (options_.learned == nullptr) {
            own_learned_ = std::make_unique<LearnedSizes>();
            options_.learned = own_learned_.get();
        }
        if (options.share_deltas) {
            workspace_.snapshots.shared = std::make_unique<snapshot::SharedDeltas>();
        }
    }

    ~Inspector();
    Inspector(const Inspector&) = delete;
    Inspector& operator=(const Inspector&) = delete;
    Inspector(Inspector&&) = delete;
    Inspector& operator=(Inspector&&) = delete;

    /// What comes from here on may lack datagrams, or all of one direction: a capture, a tap.
    void expect_missing() { options_.sees_all = false; }

    /// `key` names the session for the calls that follow; it must not be in use. `checkpoint`: of the
    /// observer that looked at it until now; sound. `server_name`: lives as long as the run; empty:
    /// the server has none.
    void on_open(std::uint64_t key, record::Timestamp time, std::string client, std::string server,
                 std::optional<SessionCheckpoint> checkpoint = std::nullopt,
                 std::string_view server_name = {});
    /// What another observer needs to go on with it; nothing for one that is not known.
    [[nodiscard]] std::optional<SessionCheckpoint> save(std::uint64_t key) const;
    /// The same of the session whose datagram begins, for who watches it, as encode_checkpoint writes it;
    /// empty where no connection runs.
    [[nodiscard]] std::vector<std::byte> state_at_hand() const;
    /// Somebody else saw more of the session before its next datagram: what is not known here is
    /// taken from that. Sound.
    void restore(std::uint64_t key, SessionCheckpoint checkpoint);
    /// `next`: of the call that comes after this one, of whatever session, where that is at hand; the
    /// bytes of both stay where they are until then.
    void on_datagram(std::uint64_t key, record::Timestamp time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next = {});

    /// The datagram announced as `next` does not come: its place may hold another one from here on.
    void on_passed_over() { workspace_.packet.begin({}, {}); }

    /// Copies were lost: of one session, or with key 0 of any. `reason` is what the finding says.
    void on_gap(std::uint64_t key, record::Timestamp time, std::uint64_t lost,
                std::string_view reason = "ring_full");
    /// A client's input was rewritten on its way, to ask for a full snapshot.
    void on_resync(std::uint64_t key, record::Timestamp time);
    void on_close(std::uint64_t key, record::Timestamp time, std::string_view reason);
    /// Nothing of the session can be rebuilt before a full snapshot, and it is of 0.6, whose clients'
    /// inputs can be rewritten to ask for one.
    [[nodiscard]] bool wants_resync(std::uint64_t key) const;
    /// Begins a session that comes without its packets; `on_played` ends it.
    [[nodiscard]] std::unique_ptr<Playback> play(record::Timestamp time, std::string client,
                                                 std::string server, snapshot::Dialect dialect);
    void on_played(Playback& playback, record::Timestamp time, std::string_view reason);

    /// Writes the totals of all open sessions so far.
    void report(record::Timestamp time);
    /// Closes what is open, in order of appearance.
    void finish(record::Timestamp time, std::string_view reason);

    /// Totals of all sessions of this worker, open ones included.
    [[nodiscard]] record::SessionStats totals() const;

    /// Shows the totals so far of each open session, in order of appearance.
    void
    visit(const std::function<void(std::uint32_t number, const record::SessionStats&)>& see) const;

    [[nodiscard]] std::size_t open_sessions() const { return sessions_.size(); }

    [[nodiscard]] std::uint32_t sessions_seen() const { return seen_; }

  private:
    struct Watched {
        std::unique_ptr<Session> session;
        record::Timestamp heard = 0;    ///< its last datagram
        std::size_t charged = 0;        ///< to the budget
        std::uint32_t until_charge = 1; ///< datagrams
    };

    /// Keys in order of appearance.
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
    std::unique_ptr<LearnedSizes> own_learned_; ///< null: shared with other inspectors
    std::unordered_map<std::uint64_t, Watched> sessions_;
    record::SessionStats closed_;
    std::uint32_t seen_ = 0;
    const Session* at_hand_ = nullptr; ///< whose datagram is looked at
};

} // namespace tw::inspect
