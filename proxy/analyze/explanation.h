#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "proxy/wire/packet.h"
#include "snapshot/item.h"
#include "snapshot/parts.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace tw::analyze {

/// Selects the finding to explain; an empty member matches any value.
struct FindingSelection {
    std::optional<std::int64_t> session{};
    std::optional<std::int64_t> tick{};
};

/// A datagram of a capture with a part of the finding's snapshot. Offsets are in its payload; if it
/// is compressed, in the decompressed payload after the packet's header.
struct SnapshotDatagram {
    std::string file{};
    std::uint64_t frame = 0; ///< number in the file, from 1; 0 if unknown
    std::int64_t time = 0;   ///< nanoseconds since 1970
    std::size_t bytes = 0;   ///< size of the payload, as sent
    std::size_t header = 0;  ///< size of the packet's header
    bool compressed = false;
    std::int32_t part = 0;
    std::int32_t num_parts = 1;
    std::size_t begin = 0; ///< offset of the part of the delta
    std::size_t size = 0;  ///< size of the part of the delta
};

/// Collects from a run's records what happened around one finding about snapshots: the first finding that
/// explains others, or else the first error, or else the first warning. Records come as JSON lines, so
/// captures and recordings give the same result. Keeps one item of each key for each session, and some
/// lines of text.
class Explanation {
  public:
    /// The items of a snapshot as in records, by type number and id.
    using Items = std::map<std::pair<std::int64_t, std::int64_t>, boost::json::object>;

    explicit Explanation(const FindingSelection& wanted) : wanted_{wanted} {}

    /// Reads a line. Ignores lines that are not records or not relevant.
    void on_line(std::string_view line);
    /// Reads several lines, each with its newline.
    void on_lines(std::string_view lines);

    [[nodiscard]] bool has_finding() const { return !finding_.empty(); }

    /// A finding that could be explained.
    struct ExplainableFinding {
        std::int64_t session = 0;
        std::optional<std::int64_t> tick{};
        std::string id;

        friend bool operator==(const ExplainableFinding&, const ExplainableFinding&) = default;
    };

    /// The first warnings and errors, at most one for each tick of a session.
    [[nodiscard]] const std::vector<ExplainableFinding>& explainable_findings() const {
        return explainable_;
    }

    [[nodiscard]] std::uint64_t num_explainable() const { return num_explainable_; }

    /// A kind of findings about snapshots.
    struct FindingKind {
        std::string id;
        std::string type; ///< the item's type, for snapshot.size_differs
        bool is_info = false;
        std::uint64_t count = 0;  ///< number of reported findings, without repetitions
        std::int64_t session = 0; ///< session of the first finding of this kind
        std::int64_t tick = 0;    ///< tick of the first finding of this kind
    };

    /// The kinds seen, in the order of their first finding; at most kMaxKinds.
    [[nodiscard]] const std::vector<FindingKind>& kinds() const { return kinds_; }

    /// The number of findings that are not about snapshots.
    [[nodiscard]] std::uint64_t num_others() const { return num_others_; }

    /// The requested selection.
    [[nodiscard]] const FindingSelection& wanted() const { return wanted_; }

    [[nodiscard]] std::size_t num_sessions() const { return sessions_.size(); }

    /// True if the requested session has no record.
    [[nodiscard]] bool lacks_session() const;

    /// The session and the tick of the finding. A finding without a tick has tick −1.
    [[nodiscard]] std::int64_t session() const { return number_; }

    [[nodiscard]] std::int64_t tick() const;

    [[nodiscard]] const boost::json::object& finding() const { return finding_; }

    /// The record of a later finding that explains finding(); empty if there is none.
    [[nodiscard]] const boost::json::object& explaining_finding() const {
        return explaining_finding_;
    }

    /// The JSON object with the item that the finding is about, and with the item's wrong value if it is
    /// known: finding(), explaining_finding(), or the likeliest candidate in them. Null if no object has
    /// an item.
    [[nodiscard]] const boost::json::object* suspect() const;

    /// True if suspect() is only the likeliest candidate.
    [[nodiscard]] bool is_guess() const;

    /// The item of suspect(); null if there is none.
    [[nodiscard]] const boost::json::object* item() const;

    /// The item in the last snapshot before the finding; null if there is no such snapshot or item.
    [[nodiscard]] const boost::json::object* item_before() const { return item_in(before_); }

    [[nodiscard]] const boost::json::object* item_after() const {
        return after_tick_ ? item_in(after_) : nullptr;
    }

    [[nodiscard]] std::optional<std::int64_t> before_tick() const { return before_tick_; }

    [[nodiscard]] std::optional<std::int64_t> after_tick() const { return after_tick_; }

    /// The first tick from the finding's on that the client acknowledged although this program rejected
    /// the tick's snapshot; nullopt if there is none.
    [[nodiscard]] std::optional<std::int64_t> acknowledged_tick() const { return acknowledged_; }

    /// True if this program rejected the finding's snapshot.
    [[nodiscard]] bool is_rejected() const { return !rejected_.empty(); }

    /// True if the records have acknowledgements of the client after the finding.
    [[nodiscard]] bool has_acknowledgements() const { return has_acknowledgements_; }

    /// The datagrams of the finding's snapshot, if a capture was read.
    [[nodiscard]] const std::vector<SnapshotDatagram>& datagrams() const { return datagrams_; }

    void set_datagrams(std::vector<SnapshotDatagram> datagrams) {
        datagrams_ = std::move(datagrams);
    }

    /// The events around the finding with their times, one line each.
    [[nodiscard]] const std::vector<std::string>& events() const { return events_; }

    /// Describes the session: "session 3, 127.0.0.1:50000 at 127.0.0.1:8303, 0.6+ddnet, map dm1".
    [[nodiscard]] const std::string& title() const { return title_; }

  private:
    static constexpr std::int64_t kNoSession = 0;
    static constexpr std::size_t kMaxKinds = 24;
    static constexpr std::size_t kMaxRejected = 256;

    struct Session {
        std::string peers;
        std::string map;
        Items items;
        std::optional<std::int64_t> tick; ///< tick of `items`
        std::int64_t acked = 0;
        std::deque<std::string> recent;
    };

    void forget_session(std::int64_t number, Session& session);
    static void on_session(const boost::json::object& record, Session& session);
    void on_snapshot(const boost::json::object& record, std::int64_t number, Session& session);
    void note_verdict(std::int64_t tick, bool ok, const Items& items);
    void on_finding(const boost::json::object& record, std::int64_t number, Session& session);
    void on_input(const boost::json::object& record, std::int64_t number, Session& session);
    void add_event(const boost::json::object& record, std::int64_t number, Session& session,
                   const std::string& what);
    void note_explainable(const boost::json::object& record, std::int64_t number);
    void note_kind(const boost::json::object& record, std::int64_t number);
    [[nodiscard]] bool is_wanted(const boost::json::object& record, std::int64_t number) const;
    [[nodiscard]] const boost::json::object* item_in(const Items& items) const;

    FindingSelection wanted_;
    std::map<std::int64_t, Session> sessions_;
    /// The number of the finding's session; kNoSession before the finding and after its explanation is
    /// complete.
    std::int64_t number_ = kNoSession;
    boost::json::object finding_;
    boost::json::object explaining_finding_;
    Items before_;
    Items after_;
    std::optional<std::int64_t> before_tick_;
    std::optional<std::int64_t> after_tick_;
    std::vector<std::string> events_;
    std::vector<std::int64_t> rejected_; ///< rejected ticks; the first is the finding's
    std::optional<std::int64_t> acknowledged_;
    bool has_acknowledgements_ = false;
    std::vector<SnapshotDatagram> datagrams_;
    int num_listed_acks_ = 0; ///< number of acknowledgements listed after the finding
    std::string title_;
    std::vector<ExplainableFinding> explainable_;
    std::uint64_t num_explainable_ = 0;
    std::vector<FindingKind> kinds_;
    std::uint64_t num_others_ = 0;
    std::pair<std::int64_t, std::optional<std::int64_t>> last_explainable_{};
};

/// Notes the datagrams of a capture in which snapshots arrive, and the snapshots' positions in the datagrams.
class SnapshotDatagrams final : public inspect::Observer {
  public:
    /// The position of a datagram in its capture.
    struct DatagramPosition {
        std::string_view file{};
        std::uint64_t frame = 0; ///< number of the frame in the file, from 1; 0 if it is unknown
    };

    /// The most datagrams kept for each session: as many as the largest snapshot has parts.
    static constexpr std::size_t kMaxDatagrams = snapshot::kMaxParts;
    /// The most sessions whose datagrams are kept, because an attacker can cause any number of sessions.
    static constexpr std::size_t kMaxSessions = 4096;

    /// `place`: returns the position of the datagram of a time. `on_read`: called after each datagram.
    SnapshotDatagrams(std::function<DatagramPosition(record::Timestamp)> place,
                      std::function<void()> on_read)
        : place_{std::move(place)}, on_read_{std::move(on_read)} {}

    /// Returns the latest datagrams with this tick of the session, by part.
    [[nodiscard]] std::vector<SnapshotDatagram> find(std::int64_t session, std::int64_t tick) const;

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_part(const inspect::PartSeen& part) override;

    void on_datagram_end() override { on_read_(); }

  private:
    struct KeptDatagram {
        snapshot::Tick tick = 0;
        SnapshotDatagram datagram;
    };

    std::function<DatagramPosition(record::Timestamp)> place_;
    std::function<void()> on_read_;
    std::uint32_t session_ = 0;                              ///< session of the datagram being read
    SnapshotDatagram current_;                               ///< the datagram being read
    std::span<const std::byte> payload_;                     ///< its decompressed payload
    std::map<std::uint32_t, std::deque<KeptDatagram>> kept_; ///< by session, oldest first
};

} // namespace tw::analyze
