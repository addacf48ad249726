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
#include <string_view>
#include <vector>

namespace tw::inspect {

/// How the chunks of an accepted packet end.
struct AcceptedChunks {
    bool with_token = false; ///< the payload ends with DDNet's token
    bool damaged = false;    ///< the last chunk is truncated
};

/// How this observer handled a snapshot message.
enum class PartFate : std::uint8_t {
    complete,     ///< the message's part completed a delta, which is reported next
    stored,       ///< the message's part was stored; other parts of the delta are missing
    empty,        ///< the message contains no delta, because the snapshot did not change
    repeated,     ///< the message's tick or part was received before
    out_of_range, ///< the message has counts, sizes or ticks that every receiver rejects
    stray,        ///< the message's tick is implausible
    leftover,     ///< the message belongs to the previous map
};

/// A snapshot message, and how it was handled.
struct PartSeen {
    const wire::SnapshotBody& body;
    PartFate fate;
};

/// How this observer handled a complete delta.
enum class DeltaFate : std::uint8_t {
    accepted,     ///< the snapshot was rebuilt and its checksum is right
    repeated,     ///< the delta's tick is older than all stored snapshots
    unknown_base, ///< the delta's base was not seen here
    undecodable,
    mismatched, ///< the snapshot was rebuilt, but its checksum is wrong
};

/// A complete delta, and how it was handled.
struct DeltaSeen {
    const snapshot::AssembledDelta& delta; ///< `marked`: which parts came in compressed packets
    std::int32_t last_part = 0;            ///< number of the part that arrived last
    DeltaFate fate = DeltaFate::accepted;
    /// Null if the base is unknown or the delta cannot be decoded.
    const snapshot::Delta* decoded = nullptr;
    const record::TypeNames* types = nullptr;
};

/// Receives a call for each step of reading a session's traffic, in the order of the bytes.
/// Subclasses must not change the session. Arguments are valid during the call only.
class Observer : public record::Interface {
  public:
    /// A datagram is about to be read. `head`: its time, session and direction.
    virtual void on_datagram(const record::RecordHead& /*head*/,
                             std::span<const std::byte> /*datagram*/) {}

    /// The datagram is a valid packet, which the following calls describe.
    virtual void on_packet(const wire::Packet& /*packet*/) {}

    virtual void on_control(const wire::Control& /*control*/) {}

    /// The receiver accepts the packet, which has these chunks. Not called for a rejected packet.
    virtual void on_chunks(const AcceptedChunks& /*chunks*/) {}

    /// A chunk of the accepted packet. `head`: the head of the chunk's message; null if the message id
    /// cannot be read.
    virtual void on_chunk(const wire::Chunk& /*chunk*/, wire::VitalClass /*taken*/,
                          const wire::MessageHead* /*head*/) {}

    /// The message's fields were read. They take the first `bytes` bytes of the body; the rest are
    /// trailing bytes. Not called for snapshot messages (see on_part).
    virtual void on_fields(std::size_t /*bytes*/) {}

    /// The chunk's message is a snapshot or a part of one.
    virtual void on_part(const PartSeen& /*part*/) {}

    virtual void on_delta(const DeltaSeen& /*delta*/) {}

    /// The datagram was read completely.
    virtual void on_datagram_end() {}
};

/// The observers of a worker's sessions. Observers must outlive the sessions.
class Observers {
  public:
    /// An empty list.
    [[nodiscard]] static const Observers& none() {
        static const Observers nobody;
        return nobody;
    }

    void add(Observer& observer) { list_.push_back(&observer); }

    template <typename... Hook, typename... Args>
    void notify(void (Observer::*hook)(Hook...), Args&&... args) const {
        if (list_.empty()) [[likely]] {
            return;
        }
        for (Observer* const observer : list_) {
            (observer->*hook)(args...);
        }
    }

  private:
    std::vector<Observer*> list_;
};

/// Emits the records of a session: sets their heads, counts findings, and passes the records to the
/// sink.
class Reporter {
  public:
    Reporter(std::uint32_t session, record::RecordSink& sink) : sink_{&sink} {
        head_.session = session;
    }

    /// Sets the configured name of the server; the text must live as long as the run.
    void name_server(std::string_view name) { head_.server_name = name; }

    /// Starts a datagram. All further records have its time and direction.
    void begin(record::Timestamp time, std::optional<wire::Direction> direction) {
        head_.time = time;
        head_.direction = direction;
        direction_ = direction.value_or(wire::Direction::c2s);
    }

    [[nodiscard]] const record::RecordHead& head() const { return head_; }

    /// The head of records about the whole session, which have no direction.
    [[nodiscard]] record::RecordHead session_head() const {
        return {.time = head_.time,
                .session = head_.session,
                .direction = std::nullopt,
                .server_name = head_.server_name};
    }

    template <typename T>
    void emit(const T& record) {
        sink_->on_record(record::Record{&record});
    }

    /// Counts the finding and emits its record.
    void finding(record::FindingRecord record) {
        count(record.id);
        record.head = head_;
        emit(record);
    }

    /// Counts the finding each time, but emits only the first one with its id since forget_reported().
    void finding_once(const record::FindingRecord& record) {
        const auto index = static_cast<std::size_t>(record.id);
        if (reported_.test(index)) {
            count(record.id);
            return;
        }
        reported_.set(index);
        finding(record);
    }

    /// Lets finding_once() emit findings again that it has emitted, for a new connection.
    void forget_reported() { reported_.reset(); }

    void count(record::FindingId id) { ++stats.findings[static_cast<std::size_t>(id)]; }

    /// Totals of the current connection.
    record::SessionStats stats;

    /// Direction of the current datagram; c2s if there is none.
    [[nodiscard]] wire::Direction direction() const { return direction_; }

    [[nodiscard]] record::DirectionStats& direction_stats() {
        return stats.directions[wire::index_of(direction())];
    }

  private:
    record::RecordSink* sink_;
    record::RecordHead head_;
    wire::Direction direction_ = wire::Direction::c2s;
    std::bitset<record::kFindingCount> reported_;
};

} // namespace tw::inspect
