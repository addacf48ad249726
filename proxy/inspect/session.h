#pragma once

#include "proxy/inspect/connection/packet_acceptance.h"
#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/message_reporter.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/server_silence.h"
#include "proxy/inspect/snapshots/client_view.h"
#include "proxy/inspect/snapshots/snapshot_tracker.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/wire/message.h"
#include "proxy/wire/message_set.h"
#include "proxy/wire/packet.h"

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

/// Datagrams of a connection whose protocol is not known yet, kept in order until it is. Needed for
/// captures and taps only: the relay sees sessions from their start.
class HeldDatagrams {
  public:
    /// Two seconds of a client's inputs; a running server answers the first of them.
    static constexpr std::size_t kMaxDatagrams = 100;
    static constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;

    struct Held {
        record::Timestamp time = 0;
        wire::Direction direction = wire::Direction::c2s;
        std::vector<std::byte> bytes;
    };

    void hold(record::Timestamp time, wire::Direction direction, std::span<const std::byte> bytes) {
        held_.push_back({time, direction, {bytes.begin(), bytes.end()}});
        bytes_ += bytes.size();
    }

    [[nodiscard]] bool empty() const { return held_.empty(); }

    [[nodiscard]] std::size_t size() const { return held_.size(); }

    /// True if the limit is reached: the protocol must be decided now.
    [[nodiscard]] bool full() const { return held_.size() >= kMaxDatagrams || bytes_ >= kMaxBytes; }

    /// Returns all datagrams and leaves the list empty.
    [[nodiscard]] std::vector<Held> take() {
        bytes_ = 0;
        return std::exchange(held_, {});
    }

    [[nodiscard]] std::size_t memory_bytes() const {
        return bytes_ + held_.capacity() * sizeof(Held);
    }

  private:
    std::vector<Held> held_;
    std::size_t bytes_ = 0; ///< sum of the payload sizes
};

/// Counts the memory of all sessions and maps of a run. It only counts; its users free memory when
/// it is exceeded. Thread-safe.
class MemoryBudget {
  public:
    /// A game with 64 players on a large map needs 160 MiB; three of them fit.
    static constexpr std::size_t kDefaultBytes = std::size_t{512} << 20U;

    explicit MemoryBudget(std::size_t limit = kDefaultBytes) : limit_{limit} {}

    /// A charge of `before` bytes becomes `after` bytes.
    void change(std::size_t before, std::size_t after) noexcept {
        used_.fetch_add(after - before, std::memory_order_relaxed); // wraps on purpose
    }

    [[nodiscard]] bool exceeded() const noexcept { return used() > limit_; }

    /// Memory is freed until this is false, so that the limit is not exceeded again at once.
    [[nodiscard]] bool tight() const noexcept { return used() > limit_ - limit_ / 8; }

    [[nodiscard]] std::size_t used() const noexcept {
        return used_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

  private:
    std::size_t limit_;
    std::atomic<std::size_t> used_{0};
};

/// A shared value that is charged to `budget` while it exists. `budget` must outlive it; null: not
/// charged.
template <typename T>
[[nodiscard]] std::shared_ptr<const T> charged(MemoryBudget* budget, T value, std::size_t bytes) {
    if (budget == nullptr) {
        return std::make_shared<const T>(std::move(value));
    }
    budget->change(0, bytes);
    return {std::make_unique<const T>(std::move(value)).release(), [budget, bytes](const T* held) {
                std::default_delete<const T>{}(held);
                budget->change(bytes, 0);
            }};
}

/// Updates the roster from a 0.7 message (0.7 sheet, section 6.2). Other messages change nothing.
void update_roster(const wire::MessageHead& head, record::Roster& roster);

/// Settings of inspection.
struct Options {
    /// Known object types; null: the standard table.
    const snapshot::ObjectSet* objects = nullptr;
    /// Messages that a mod describes; must outlive the sessions.
    const wire::MessageSet* described = &wire::MessageSet::standard();
    bool messages = true; ///< emit a record for each message
    /// Decode with learned item sizes if they differ from the agreed ones.
    bool learn_sizes = false;
    /// Chat commands whose arguments are no secret; null: only the built-in harmless ones. Must
    /// outlive the sessions.
    const wire::CommandNames* shown_commands = nullptr;
    /// True if no datagram can be missing, as in the relay. False for captures and taps: they may
    /// lack datagrams or all of one direction, so a missing datagram proves nothing.
    bool sees_all = true;
    /// Item sizes learned by the sessions of a run; null: each inspector has its own table. Must
    /// outlive the sessions.
    LearnedSizes* learned = nullptr;
    /// Decode the common parts of several sessions' deltas once; useful if the sessions belong to
    /// one game.
    bool share_deltas = false;
    /// Memory limit of all sessions of a run; null: unlimited. Must outlive the sessions.
    MemoryBudget* memory = nullptr;
    /// Snapshot memory shared by the sessions of one thread; null: each session has its own. Must
    /// outlive the sessions.
    snapshot::Arena* arena = nullptr;
    /// State shared by sessions of the same server; null: nothing is shared. Must outlive the
    /// sessions.
    SharedServers* servers = nullptr;
    /// Observers of the sessions' traffic; must outlive the sessions.
    const Observers* observers = &Observers::none();
};

/// Buffers for one call, shared by all sessions of a worker, so that decoding does not allocate
/// once they have grown.
struct Workspace {
    wire::PacketScratch packet;
    ChunkBuffer chunks;
    wire::DecodedFields fields;
    SnapshotWorkspace snapshots;
};

/// One session: all datagrams between a client and a server, in the order they passed.
class Session {
  public:
    Session(std::uint32_t number, std::string client, std::string server, const Options& options,
            MapSource& maps, record::RecordSink& sink);

    /// Sets the configured name of the server, which must live as long as the run. Call it before
    /// anything else.
    void name_server(std::string_view name) { reporter_.name_server(name); }

    void open(record::Timestamp time);
    void on_datagram(record::Timestamp time, wire::Direction direction,
                     std::span<const std::byte> bytes, Workspace& workspace);
    /// Copies of datagrams were lost before inspection.
    void on_gap(record::Timestamp time, std::uint64_t lost, std::string_view reason);

    /// What another observer needs to continue this session.
    [[nodiscard]] SessionCheckpoint save() const {
        if (!running_) {
            return checkpoint_.value_or(SessionCheckpoint{});
        }
        SessionCheckpoint checkpoint{.map = maps_.announced()};
        snapshots_.save(checkpoint);
        acceptance_.save(checkpoint);
        return checkpoint;
    }

    /// Another observer watched this session until now: its checkpoint fills in what is not known
    /// here. `checkpoint` must be sound.
    void restore(SessionCheckpoint checkpoint) { checkpoint_ = std::move(checkpoint); }

    /// The relay rewrote an input of the client to request a full snapshot.
    void on_resync(record::Timestamp time);

    /// Frees memory the session can do without.
    void trim() { snapshots_.trim(); }

    /// Frees all memory of the session; as after a gap, it can verify nothing until the next full
    /// snapshot.
    void shed(record::Timestamp time);

    /// Writes a summary record with the totals so far.
    void report(record::Timestamp time) {
        reporter_.begin(time, std::nullopt);
        reporter_.emit(
            record::SummaryRecord{.head = reporter_.session_head(), .stats = &reporter_.stats});
    }

    /// The session is over for a reason outside its traffic: "idle", "shutdown", "end of capture".
    void close(record::Timestamp time, std::string_view reason, Workspace& workspace);

    [[nodiscard]] std::uint32_t number() const { return reporter_.head().session; }

    /// Totals of all its connections.
    [[nodiscard]] record::SessionStats totals() const {
        record::SessionStats totals = ended_;
        totals.merge(reporter_.stats);
        return totals;
    }

    [[nodiscard]] const record::SessionStats& current() const { return reporter_.stats; }

    [[nodiscard]] const SnapshotTracker& snapshots() const { return snapshots_; }

    /// Memory that grows with the traffic, in bytes.
    [[nodiscard]] std::size_t memory_bytes() const {
        return snapshots_.memory_bytes() + maps_.memory_bytes() + messages_.memory_bytes() +
               held_.memory_bytes();
    }

  private:
    /// Reads one datagram.
    void read(record::Timestamp time, wire::Direction direction, std::span<const std::byte> bytes,
              Workspace& workspace);
    /// Whether too little of the datagram's connection was seen to read it yet.
    [[nodiscard]] bool has_to_wait(std::span<const std::byte> bytes, Workspace& workspace);
    /// Reads the held datagrams, now that their connection is known, then the current one.
    void read_held(ConnectionChange change, Workspace& workspace);
    /// Gives up waiting: takes the held datagrams for one side of a conversation, if they look like
    /// one.
    void decide_held(Workspace& workspace);
    /// Reports once that one side of the conversation was never seen.
    void report_one_side();
    void watch_silence(bool waits);
    void on_bytes(std::span<const std::byte> bytes, Workspace& workspace);
    void on_packet(const wire::Packet& read, std::span<const std::byte> bytes,
                   Workspace& workspace);
    void on_control(const wire::Packet& packet, Workspace& workspace);
    void on_chunks(const wire::Packet& packet, Workspace& workspace);
    void on_accepted(const wire::Packet& packet, const PacketChunks& chunks, Workspace& workspace);
    [[nodiscard]] bool read_by_version(wire::MessageHead& head);
    void on_message(AcceptedMessage& message, bool compressed, Workspace& workspace);
    void act_on(const wire::MessageHead& head);
    /// Messages that only the server or only the client sends.
    void act_on_server(const wire::MessageHead& head);
    void act_on_client(const wire::MessageHead& head);
    void begin_connection(ConnectionChange change);
    void apply_pending_checkpoint();
    void apply_checkpoint(const SessionCheckpoint& checkpoint);
    void end_connection(std::string_view reason);
    void emit_session(record::SessionEvent event, std::string_view reason = {});

    std::string client_;
    std::string server_;
    const Observers* observers_;
    const wire::MessageSet* described_; ///< messages that a mod describes
    Reporter reporter_;
    ServerSilence silence_;
    PacketAcceptance acceptance_;
    MessageReporter messages_;
    MapTracker maps_;
    InputTracker inputs_;
    SnapshotTracker snapshots_;
    HeldDatagrams held_;
    bool sees_all_;
    bool one_sided_ = false;  ///< one side was never seen, which was reported
    std::uint64_t heard_ = 0; ///< datagrams seen so far
    /// Another observer's checkpoint, until it is applied.
    std::optional<SessionCheckpoint> checkpoint_;
    record::SessionStats ended_; ///< totals of earlier connections
    bool running_ = false;       ///< a connection was established and not closed
    bool closed_ = false;        ///< the session's close was reported
};

} // namespace tw::inspect
