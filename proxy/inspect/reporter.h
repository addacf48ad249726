#pragma once

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

/// A packet of chunks that belongs to the connection.
struct AcceptedChunks {
    bool with_token = false; ///< DDNet's token stands at the payload's end
    bool damaged = false;    ///< the last chunk is cut
};

/// What became of a snapshot message.
enum class PartFate : std::uint8_t {
    complete,     ///< it completes a delta, which is reported next
    stored,       ///< parts are still missing
    empty,        ///< carries no delta: nothing changed
    repeated,     ///< its tick, or this part of it, was there before
    out_of_range, ///< counts, sizes or ticks that no receiver takes
    stray,        ///< a tick that cannot be the server's
    leftover,     ///< of the map before
};

struct PartSeen {
    const wire::SnapshotBody& body;
    PartFate fate;
};

/// What became of a delta.
enum class DeltaFate : std::uint8_t {
    accepted,     ///< the snapshot was rebuilt, its checksum agrees
    repeated,     ///< too far behind the newest to be kept
    unknown_base, ///< its base did not pass by
    undecodable,
    mismatched, ///< rebuilt, but with another checksum
};

struct DeltaSeen {
    const snapshot::AssembledDelta& delta; ///< parts of compressed packets are marked
    std::int32_t last_part = 0;            ///< the part that came last
    DeltaFate fate = DeltaFate::accepted;
    const snapshot::Delta* decoded = nullptr; ///< null on an unknown base, and where it cannot be
    const record::TypeNames* types = nullptr;
};

/// Watches a session read its traffic. Every hook is called once for what it names, in the order of
/// the bytes; none may change anything. What is handed over lives as long as the call.
class Observer {
  public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    Observer(Observer&&) = delete;
    Observer& operator=(Observer&&) = delete;
    virtual ~Observer() = default;

    /// A datagram begins, of the session and direction in the head.
    virtual void on_datagram(const record::RecordHead& /*head*/,
                             std::span<const std::byte> /*datagram*/) {}

    /// It is a packet; what follows is about it.
    virtual void on_packet(const wire::Packet& /*packet*/) {}

    virtual void on_control(const wire::Control& /*control*/) {}

    /// The packet's chunks count. Without this call they do not.
    virtual void on_chunks(const AcceptedChunks& /*chunks*/) {}

    /// A chunk of them. `head`: of its message, null where its id cannot be read.
    virtual void on_chunk(const wire::Chunk& /*chunk*/, wire::VitalClass /*taken*/,
                          const wire::MessageHead* /*head*/) {}

    /// The fields of the chunk's message were read: `bytes` of the body, the rest trails. Not
    /// called where on_part is.
    virtual void on_fields(std::size_t /*bytes*/) {}

    /// The chunk's message is a snapshot, or a part of one.
    virtual void on_part(const PartSeen& /*part*/) {}

    virtual void on_delta(const DeltaSeen& /*delta*/) {}

    /// All of the datagram was read.
    virtual void on_datagram_end() {}
};

/// The observers of a worker's sessions, who have to outlive these.
class Observers {
  public:
    /// Nobody watches.
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

/// Where a session's parts hand in what they saw: completes the head, counts, passes on.
class Reporter {
  public:
    Reporter(std::uint32_t session, record::RecordSink& sink) : sink_{&sink} {
        head_.session = session;
    }

    /// Its server has a name; which lives as long as the run.
    void name_server(std::string_view name) { head_.server_name = name; }

    /// The datagram at hand: every record from here on carries its time and direction.
    void begin(record::Timestamp time, std::optional<wire::Direction> direction) {
        head_.time = time;
        head_.direction = direction;
        direction_ = direction.value_or(wire::Direction::c2s);
    }

    [[nodiscard]] const record::RecordHead& head() const { return head_; }

    /// The head without a direction, for what concerns the session as a whole.
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

    /// Counts and passes on.
    void finding(record::FindingRecord record) {
        count(record.id);
        record.head = head_;
        emit(record);
    }

    /// Counts every time, passes on only the first of its kind since `forget_once`.
    void finding_once(const record::FindingRecord& record) {
        const auto index = static_cast<std::size_t>(record.id);
        if (reported_.test(index)) {
            count(record.id);
            return;
        }
        reported_.set(index);
        finding(record);
    }

    /// A new connection: what was reported once may be reported again.
    void forget_once() { reported_.reset(); }

    void count(record::FindingId id) { ++stats.findings[static_cast<std::size_t>(id)]; }

    /// Totals of the connection in progress.
    record::SessionStats stats;

    /// Of the datagram at hand; c2s where there is none.
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
