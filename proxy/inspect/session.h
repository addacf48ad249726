#pragma once

#include "proxy/inspect/attribution.h"
#include "proxy/inspect/cadence.h"
#include "proxy/inspect/connection.h"
#include "proxy/inspect/map_download.h"
#include "proxy/inspect/map_source.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshots.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::inspect {

/// What inspection is asked to do.
struct Options {
    /// What is known of items; null: the standard table.
    const snapshot::ObjectSet* objects = nullptr;
    bool messages = true;             ///< hand out a record for every message
    record::Ledger* ledger = nullptr; ///< where every byte is booked; null: nowhere
};

/// Buffers for the time of one call, shared by all sessions of a worker: nothing on the way from
/// datagram to snapshot allocates once they have grown.
struct Workspace {
    static constexpr std::size_t kMaxChunks = 255; ///< what a packet header can count

    wire::PacketScratch packet;
    std::array<wire::Chunk, kMaxChunks> chunks;
    wire::DecodedFields fields;
    SnapshotWorkspace snapshots;
};

/// One session: all datagrams between a client and a server, in the order they passed.
class Session {
  public:
    Session(std::uint32_t number, std::string client, std::string server, const Options& options,
            MapSource& maps, record::RecordSink& sink);

    void open(record::Timestamp time);
    void on_datagram(record::Timestamp time, wire::Direction direction,
                     std::span<const std::byte> bytes, Workspace& workspace);
    /// Copies of datagrams were lost on the way here.
    void on_gap(record::Timestamp time, std::uint64_t lost);
    /// Writes the totals so far.
    void report(record::Timestamp time);
    /// The session is over for a reason outside its traffic: "idle", "shutdown", "end of capture".
    void close(record::Timestamp time, std::string_view reason);

    [[nodiscard]] std::uint32_t number() const { return reporter_.head().session; }

    /// Totals of all its connections.
    [[nodiscard]] record::SessionStats totals() const;

    [[nodiscard]] const record::SessionStats& current() const { return reporter_.stats; }

    [[nodiscard]] const SnapshotTracker& snapshots() const { return snapshots_; }

  private:
    void on_bytes(std::span<const std::byte> bytes, Workspace& workspace);
    void on_control(const wire::Packet& packet, Workspace& workspace);
    void on_connless(const wire::Packet& packet, Workspace& workspace);
    void on_chunks(const wire::Packet& packet, Workspace& workspace);
    /// `next`: it was accepted, vital or not.
    wire::VitalClass on_chunk(const wire::Chunk& chunk, Workspace& workspace);
    void on_content(const wire::Chunk& chunk, Workspace& workspace);
    void on_message(const wire::Chunk& chunk, const wire::MessageHead& head, Workspace& workspace);
    void act_on(const wire::Chunk& chunk, const wire::MessageHead& head, Workspace& workspace);
    void report_fields(const wire::Chunk& chunk, const wire::MessageHead& head,
                       Workspace& workspace);
    /// Snapshot parts and map chunks are not repeated in message records; of a chunk its place in
    /// the map is told.
    void leave_out_bulk(wire::MessageId id, wire::DecodedFields& fields) const;
    void report_unknown(const wire::Chunk& chunk, const wire::MessageHead& head);
    void restart_snapshots();
    void on_input(std::span<const std::byte> body);
    void on_map_change(std::span<const std::byte> body);
    void on_map_details(std::span<const std::byte> body);
    void on_map_data(std::span<const std::byte> body);
    void use_map(const MapAnnouncement& announced, const FoundMap& found, std::string_view source);
    void begin_connection(ConnectionChange change);
    void end_connection(std::string_view reason);
    void emit_session(record::SessionEvent event, std::string_view reason = {});

    [[nodiscard]] wire::Direction direction() const { return *reporter_.head().direction; }

    std::string client_;
    std::string server_;
    Options options_;
    MapSource* maps_;
    Reporter reporter_;
    Connection connection_;
    SnapshotTracker snapshots_;
    std::unique_ptr<Attribution> attribution_; ///< null unless asked for
    ArrivalJitter inputs_;
    std::optional<MapAnnouncement> details_; ///< of a map_details, for the map_change behind it
    MapDownload download_;
    record::SessionStats ended_;   ///< totals of the connections before this one
    bool running_ = false;         ///< a connection was established and not closed
    bool closed_ = false;          ///< its close was reported
    bool prelude_ = false;         ///< the packet at hand is an anti-spoof prelude
    std::bitset<64> unknown_told_; ///< classic message ids, game and system
};

} // namespace tw::inspect
