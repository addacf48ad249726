#pragma once

#include "proxy/record/interface.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/wire/bodies.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "snapshot/delta.h"
#include "snapshot/parts.h"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::inspect {

/// Describes the end of an accepted packet's payload.
struct AcceptedPayload {
    bool ends_with_token = false; ///< the payload ends with DDNet's token
    bool is_last_chunk_truncated = false;
};

/// How the inspection handled a snapshot message.
enum class SnapMessageOutcome : std::uint8_t {
    complete,         ///< the message's part completed a delta; on_delta() is called next
    stored,           ///< the message's part was stored, but other parts of the delta are missing
    empty,            ///< the message contains no delta, because the snapshot did not change
    repeated,         ///< this part or snapshot was received before, or is too old
    out_of_range,     ///< the message has counts, sizes or ticks that every receiver rejects
    implausible_tick, ///< the message's tick does not fit the elapsed time
    previous_map,     ///< the message is a late one that belongs to the previous map
};

/// A snapshot message, and how the inspection handled it.
struct ObservedSnapMessage {
    const wire::SnapshotBody& body;
    SnapMessageOutcome outcome;
};

/// How the inspection handled a complete delta.
enum class DeltaOutcome : std::uint8_t {
    accepted,     ///< the snapshot was rebuilt and its checksum is right
    too_old,      ///< the new snapshot's tick is older than all stored ones
    unknown_base, ///< no stored snapshot is the delta's base
    undecodable,  ///< the delta's bytes are malformed
    mismatched,   ///< the snapshot was rebuilt, but its checksum is wrong
};

/// A complete delta, and how the inspection handled it.
struct ObservedDelta {
    const snapshot::AssembledDelta& delta; ///< `delta.marked` marks parts from compressed packets
    std::int32_t last_part = 0;            ///< number of the part that arrived last
    DeltaOutcome outcome = DeltaOutcome::accepted;
    /// The decoded delta; null if its base is unknown or it cannot be decoded.
    const snapshot::Delta* decoded_delta = nullptr;
    const record::ItemTypes* types = nullptr;
};

/// An observer is notified of each step of reading a session's traffic, in the order of the bytes.
/// It must not change the session. The arguments of a function are valid until it returns.
class Observer : public record::InterfaceBase {
  public:
    /// Called before a datagram is read. `datagram` stays valid until on_datagram_end().
    virtual void on_datagram(const record::RecordHeader& /*head*/,
                             std::span<const std::byte> /*datagram*/) {}

    /// Called if the datagram is a valid packet. The calls until on_datagram_end() concern this
    /// packet.
    virtual void on_packet(const wire::Packet& /*packet*/) {}

    virtual void on_control(const wire::Control& /*control*/) {}

    /// Called if the receiver accepts the packet, before its chunks are read.
    virtual void on_accepted_payload(const AcceptedPayload& /*payload*/) {}

    /// Called for each chunk of an accepted packet. `head`: the chunk's message id and body; null
    /// if the message id cannot be read.
    virtual void on_chunk(const wire::Chunk& /*chunk*/, wire::VitalClass /*taken*/,
                          const wire::MessageHeader* /*head*/) {}

    /// Called after the fields of a message were read. `bytes`: the size of these fields, which are
    /// at the start of the message's body. Not called for snapshot messages (see on_snap_message).
    virtual void on_message_fields(std::size_t /*bytes*/) {}

    /// Called if the chunk's message is a snapshot or a part of a snapshot.
    virtual void on_snap_message(const ObservedSnapMessage& /*message*/) {}

    virtual void on_delta(const ObservedDelta& /*delta*/) {}

    virtual void on_datagram_end() {}
};

/// The observers of a worker's sessions. Observers must outlive the sessions.
class Observers {
  public:
    [[nodiscard]] static const Observers& none() {
        static const Observers nobody;
        return nobody;
    }

    /// Adds an observer. It is called only while `*is_on` is true; always if `is_on` is null.
    void add_observer(Observer& observer, const bool* is_on = nullptr) {
        entries_.push_back({&observer, is_on});
    }

    template <typename... Hook, typename... Args>
    void notify(void (Observer::*hook)(Hook...), Args&&... args) const {
        if (entries_.empty()) [[likely]] {
            return;
        }
        for (const ObserverEntry& entry : entries_) {
            if (entry.is_on == nullptr || *entry.is_on) {
                (entry.observer->*hook)(args...);
            }
        }
    }

  private:
    struct ObserverEntry {
        Observer* observer;
        const bool* is_on;
    };

    std::vector<ObserverEntry> entries_;
};

/// Emits the records of a session to a sink: sets their heads and counts findings.
class Reporter {
  public:
    /// `client`, `server`: the addresses of both sides.
    Reporter(std::uint32_t session, record::RecordSink& sink, std::string client = {},
             std::string server = {})
        : sink_{&sink}, client_{std::move(client)}, server_{std::move(server)} {
        head_.session = session;
    }

    [[nodiscard]] const std::string& server() const { return server_; }

    /// Sets the configured name of the server; the text must outlive all records.
    void set_server_name(std::string_view name) { head_.server_name = name; }

    /// Sets the time and direction of the records that follow.
    void set_head(record::Timestamp time, std::optional<wire::Direction> direction) {
        head_.time = time;
        head_.direction = direction;
        direction_ = direction.value_or(wire::Direction::c2s);
    }

    [[nodiscard]] const record::RecordHeader& head() const { return head_; }

    /// Sets whether the time between two datagrams is the time that really passed between them.
    void set_times_reliable(bool reliable) { are_times_reliable_ = reliable; }

    [[nodiscard]] bool are_times_reliable() const { return are_times_reliable_; }

    void emit_session_event(record::SessionEvent event, std::string_view protocol,
                            std::string_view reason = {}, bool resumed = false) {
        emit(record::SessionRecord{.head = session_head(),
                                   .event = event,
                                   .client = client_,
                                   .server = server_,
                                   .protocol = protocol,
                                   .reason = reason,
                                   .resumed = resumed});
    }

    void emit_summary() { emit(record::SummaryRecord{.head = session_head(), .stats = &stats}); }

    template <typename T>
    void emit(const T& record) {
        sink_->on_record(record::Record{&record});
    }

    /// Counts the finding and emits its record.
    void report_finding(record::FindingRecord record) {
        count_finding(record.id);
        record.head = head_;
        emit(record);
    }

    /// Counts the finding. Emits its record only if no finding with this id was reported since
    /// forget_reported_findings().
    void report_finding_once(const record::FindingRecord& record) {
        const auto index = static_cast<std::size_t>(record.id);
        if (reported_findings_.test(index)) {
            count_finding(record.id);
            return;
        }
        reported_findings_.set(index);
        report_finding(record);
    }

    /// Lets report_finding_once() emit each finding id once more. Called when a connection begins.
    void forget_reported_findings() { reported_findings_.reset(); }

    void count_finding(record::FindingId id) { ++stats.findings[static_cast<std::size_t>(id)]; }

    /// Totals of the current connection.
    record::SessionStats stats;

    /// Returns the direction of the current datagram; c2s if no datagram is being read.
    [[nodiscard]] wire::Direction direction() const { return direction_; }

    [[nodiscard]] record::DirectionStats& direction_stats() {
        return stats.directions[wire::index_of(direction())];
    }

  private:
    /// Returns the head for records about the whole session, which have no direction.
    [[nodiscard]] record::RecordHeader session_head() const {
        record::RecordHeader head = head_;
        head.direction.reset();
        return head;
    }

    record::RecordSink* sink_;
    std::string client_;
    std::string server_;
    record::RecordHeader head_;
    wire::Direction direction_ = wire::Direction::c2s;
    bool are_times_reliable_ = true;
    std::bitset<record::kFindingCount> reported_findings_;
};

} // namespace tw::inspect
