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

/// Datagrams of a connection that is not known yet, kept in their order until something shows what
/// it is. Only captures and taps have them: a session that is forwarded is seen from its start.
class HeldDatagrams {
  public:
    /// Two seconds of inputs; a server in play answers the first of them.
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

    /// No more may be held: what they are has to be decided now.
    [[nodiscard]] bool full() const { return held_.size() >= kMaxDatagrams || bytes_ >= kMaxBytes; }

    /// All of them; none is held after that.
    [[nodiscard]] std::vector<Held> take() {
        bytes_ = 0;
        return std::exchange(held_, {});
    }

    [[nodiscard]] std::size_t memory_bytes() const {
        return bytes_ + held_.capacity() * sizeof(Held);
    }

  private:
    std::vector<Held> held_;
    std::size_t bytes_ = 0; ///< of their payloads
};

/// How much all sessions and maps of a run may keep, and do. It counts; who charges it sheds. May be
/// used by several threads.
class MemoryBudget {
  public:
    /// A game of 64 players on a large map keeps 160 MiB; three of them fit.
    static constexpr std::size_t kDefaultBytes = std::size_t{512} << 20U;

    explicit MemoryBudget(std::size_t limit = kDefaultBytes) : limit_{limit} {}

    /// What was charged with `before` is `after` now.
    void change(std::size_t before, std::size_t after) noexcept {
        used_.fetch_add(after - before, std::memory_order_relaxed); // wraps on purpose
    }

    [[nodiscard]] bool exceeded() const noexcept { return used() > limit_; }

    /// Shedding goes on until so much is free that it is not due again at once.
    [[nodiscard]] bool tight() const noexcept { return used() > limit_ - limit_ / 8; }

    [[nodiscard]] std::size_t used() const noexcept {
        return used_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

  private:
    std::size_t limit_;
    std::atomic<std::size_t> used_{0};
};

/// A value that is charged as long as anybody has it. `budget` outlives it; null: nobody counts.
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

/// Messages of 0.7 tell who plays (0.7 sheet, section 6.2); others change nothing.
void follow_roster(const wire::MessageHead& head, record::Roster& roster);

/// What inspection is asked to do.
struct Options {
    /// What is known of items; null: the standard table.
    const snapshot::ObjectSet* objects = nullptr;
    /// Messages that a mod describes; has to outlive the sessions.
    const wire::MessageSet* described = &wire::MessageSet::standard();
    bool messages = true;     ///< hand out a record for every message
    bool learn_sizes = false; ///< decode with sizes that differ from the agreed ones, once found
    /// Chat commands whose arguments are no secret; null: only those that are harmless everywhere.
    /// Has to outlive the sessions.
    const wire::CommandNames* shown_commands = nullptr;
    /// What was not seen was not sent, as where twscope forwards. False: a capture or a tap may lack
    /// datagrams, or all of one direction, and what it lacks proves nothing.
    bool sees_all = true;
    /// What the sessions of a run learn of sizes; null: those of one inspector share theirs alone. Has
    /// to outlive them.
    LearnedSizes* learned = nullptr;
    /// Decode once what deltas of several sessions have in common: for sessions of one game.
    bool share_deltas = false;
    /// What all sessions of a run may keep; null: any amount. Has to outlive them.
    MemoryBudget* memory = nullptr;
    /// Where sessions of one thread keep snapshots; null: each in its own. Has to outlive them.
    snapshot::Arena* arena = nullptr;
    /// What sessions of one server know of it together; null: each knows its own part only. Has to
    /// outlive them.
    SharedServers* servers = nullptr;
    /// Who watches; has to outlive the sessions.
    const Observers* observers = &Observers::none();
};

/// Buffers for the time of one call, shared by all sessions of a worker: nothing on the way from
/// datagram to snapshot allocates once they have grown.
struct Workspace {
    wire::PacketScratch packet;
    ChunkRoom chunks;
    wire::DecodedFields fields;
    SnapshotWorkspace snapshots;
};

/// One session: all datagrams between a client and a server, in the order they passed.
class Session {
  public:
    Session(std::uint32_t number, std::string client, std::string server, const Options& options,
            MapSource& maps, record::RecordSink& sink);

    /// Its server has a name, which lives as long as the run. Before anything else.
    void name_server(std::string_view name) { reporter_.name_server(name); }

    void open(record::Timestamp time);
    void on_datagram(record::Timestamp time, wire::Direction direction,
                     std::span<const std::byte> bytes, Workspace& workspace);
    /// Copies of datagrams were lost on the way here.
    void on_gap(record::Timestamp time, std::uint64_t lost, std::string_view reason);

    /// What another observer needs to go on.
    [[nodiscard]] SessionCheckpoint save() const {
        if (!running_) {
            return checkpoint_.value_or(SessionCheckpoint{});
        }
        SessionCheckpoint checkpoint{.map = maps_.announced()};
        snapshots_.save(checkpoint);
        gate_.save(checkpoint);
        return checkpoint;
    }

    /// Another observer looked at this session until its next datagram: what is not known here is
    /// taken from it. Sound.
    void restore(SessionCheckpoint checkpoint) { checkpoint_ = std::move(checkpoint); }

    /// An input of the client's was rewritten to ask for a full snapshot.
    void on_resync(record::Timestamp time);

    /// Memory is wanted: gives back what it can do without.
    void trim() { snapshots_.trim(); }

    /// Memory is wanted more than this session: it is as after a gap, until the next full snapshot.
    void shed(record::Timestamp time);

    /// Writes the totals so far.
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

    /// What grows with what comes.
    [[nodiscard]] std::size_t memory_bytes() const {
        return snapshots_.memory_bytes() + maps_.memory_bytes() + messages_.memory_bytes() +
               held_.memory_bytes();
    }

  private:
    /// A datagram whose turn it is.
    void read(record::Timestamp time, wire::Direction direction, std::span<const std::byte> bytes,
              Workspace& workspace);
    /// Whether the datagram is of a connection of which too little was seen to read it yet.
    [[nodiscard]] bool has_to_wait(std::span<const std::byte> bytes, Workspace& workspace);
    /// Reads what waited, with what is known by now, and goes on with the datagram at hand.
    void read_held(ConnectionChange change, Workspace& workspace);
    /// Nothing more will be known: what waited is taken for one side of a conversation, if it is one.
    void decide_held(Workspace& workspace);
    /// Says once that one side of the conversation was never seen, if that is so.
    void note_one_side();
    void watch_silence(bool waits);
    void on_bytes(std::span<const std::byte> bytes, Workspace& workspace);
    void on_packet(const wire::Packet& read, std::span<const std::byte> bytes,
                   Workspace& workspace);
    void on_control(const wire::Packet& packet, Workspace& workspace);
    void on_chunks(const wire::Packet& packet, Workspace& workspace);
    void on_accepted(const wire::Packet& packet, const PacketChunks& chunks, Workspace& workspace);
    [[nodiscard]] bool read_by_version(wire::MessageHead& head);
    void on_message(MessageAtHand& message, bool compressed, Workspace& workspace);
    void act_on(const wire::MessageHead& head);
    /// What only the one side or the other sends.
    void act_on_server(const wire::MessageHead& head);
    void act_on_client(const wire::MessageHead& head);
    void begin_connection(ConnectionChange change);
    void take_up_checkpoint();
    void go_on_with(const SessionCheckpoint& checkpoint);
    void end_connection(std::string_view reason);
    void emit_session(record::SessionEvent event, std::string_view reason = {});

    std::string client_;
    std::string server_;
    const Observers* observers_;
    const wire::MessageSet* described_; ///< by a mod
    Reporter reporter_;
    ServerSilence silence_;
    PacketAcceptance gate_;
    MessageReporter messages_;
    MapTracker maps_;
    InputTracker inputs_;
    SnapshotTracker snapshots_;
    HeldDatagrams held_;
    bool sees_all_;
    bool one_sided_ = false;                      ///< one side was never seen; it was said
    std::uint64_t heard_ = 0;                     ///< datagrams of a connection
    std::optional<SessionCheckpoint> checkpoint_; ///< of another observer, until it is taken up
    record::SessionStats ended_;                  ///< totals of the connections before this one
    bool running_ = false;                        ///< a connection was established and not closed
    bool closed_ = false;                         ///< its close was reported
};

} // namespace tw::inspect
