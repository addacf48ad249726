#pragma once

#include "proxy/inspect/connection_gate.h"
#include "proxy/inspect/held_datagrams.h"
#include "proxy/inspect/input_tracker.h"
#include "proxy/inspect/legacy.h"
#include "proxy/inspect/map_source.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/memory_budget.h"
#include "proxy/inspect/message_reporter.h"
#include "proxy/inspect/observer.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/server_silence.h"
#include "proxy/inspect/snapshot_tracker.h"
#include "proxy/wire/message.h"
#include "proxy/wire/message_set.h"
#include "proxy/wire/packet.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tw::inspect {

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
    [[nodiscard]] Legacy leave() const {
        if (!running_) {
            return legacy_.value_or(Legacy{});
        }
        Legacy legacy{.map = maps_.announced()};
        snapshots_.leave(legacy);
        gate_.leave(legacy);
        return legacy;
    }

    /// Another observer looked at this session until its next datagram: what is not known here is
    /// taken from it. Sound.
    void inherit(Legacy legacy) { legacy_ = std::move(legacy); }

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
    void take_up_legacy();
    void go_on_with(const Legacy& legacy);
    void end_connection(std::string_view reason);
    void emit_session(record::SessionEvent event, std::string_view reason = {});

    std::string client_;
    std::string server_;
    const Observers* observers_;
    const wire::MessageSet* described_; ///< by a mod
    Reporter reporter_;
    ServerSilence silence_;
    ConnectionGate gate_;
    MessageReporter messages_;
    MapTracker maps_;
    InputTracker inputs_;
    SnapshotTracker snapshots_;
    HeldDatagrams held_;
    bool sees_all_;
    bool one_sided_ = false;       ///< one side was never seen; it was said
    std::uint64_t heard_ = 0;      ///< datagrams of a connection
    std::optional<Legacy> legacy_; ///< of another observer, until it is taken up
    record::SessionStats ended_;   ///< totals of the connections before this one
    bool running_ = false;         ///< a connection was established and not closed
    bool closed_ = false;          ///< its close was reported
};

} // namespace tw::inspect
