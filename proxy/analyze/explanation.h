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

/// A datagram of a capture with a part of a snapshot. Offsets count from the start of the UDP
/// payload; in a compressed packet, from the start of its decompressed payload.
struct SnapshotDatagram {
    std::string file{};
    std::uint64_t frame = 0; ///< number of the frame in the file, from 1; 0 if unknown
    std::int64_t time = 0;   ///< nanoseconds since 1970
    std::size_t bytes = 0;   ///< size of the UDP payload
    std::size_t header = 0;  ///< size of the packet's header
    bool compressed = false;
    std::int32_t part = 0;
    std::int32_t num_parts = 1;
    std::size_t begin = 0; ///< offset of the delta's part in the datagram
    std::size_t size = 0;  ///< size of the delta's part in bytes
};

/// Collects from a run's records the events around one finding about snapshots: the first finding
/// that explains others, or else the first error, or else the first warning. Records are passed as
/// JSON lines, so captures and recordings give the same result. Stores the current items of each
/// session, and some lines of text.
class Explanation {
  public:
    /// The items of a snapshot, as records contain them, by type number and id.
    using Items = std::map<std::pair<std::int64_t, std::int64_t>, boost::json::object>;

    explicit Explanation(const FindingSelection& wanted) : wanted_{wanted} {}

    /// Reads a line. Ignores lines that are no records, and records that are not needed.
    void on_line(std::string_view line);
    /// Reads several lines, each with its newline.
    void on_lines(std::string_view lines);

    [[nodiscard]] bool has_finding() const { return !finding_.empty(); }

    /// A finding that the user can select to be explained.
    struct ExplainableFinding {
        std::int64_t session = 0;
        std::optional<std::int64_t> tick{};
        std::string id;

        friend bool operator==(const ExplainableFinding&, const ExplainableFinding&) = default;
    };

    /// Returns the first warnings and errors about snapshots, at most one per tick and session.
    [[nodiscard]] const std::vector<ExplainableFinding>& explainable_findings() const {
        return explainable_;
    }

    [[nodiscard]] std::uint64_t num_explainable() const { return num_explainable_; }

    /// All findings about snapshots with the same id.
    struct FindingKind {
        std::string id;
        std::string type;         ///< the item's type, for snapshot.size_differs
        bool is_info = false;     ///< the findings have the severity info
        std::uint64_t count = 0;  ///< number of finding records of this kind
        std::int64_t session = 0; ///< session of the first finding of this kind
        std::int64_t tick = 0;    ///< tick of the first finding of this kind
    };

    /// Returns at most kMaxKinds kinds of findings that occurred, in the order of their first one.
    [[nodiscard]] const std::vector<FindingKind>& finding_kinds() const { return kinds_; }

    /// Returns the number of findings that are not about snapshots.
    [[nodiscard]] std::uint64_t num_other_findings() const { return num_others_; }

    /// Returns the selection given to the constructor.
    [[nodiscard]] const FindingSelection& selection() const { return wanted_; }

    [[nodiscard]] std::size_t num_sessions() const { return sessions_.size(); }

    /// True if the selection names a session without any record.
    [[nodiscard]] bool lacks_session() const;

    /// Returns the number of the finding's session.
    [[nodiscard]] std::int64_t session() const { return number_; }

    /// Returns the finding's tick; −1 if the finding has none.
    [[nodiscard]] std::int64_t tick() const;

    [[nodiscard]] const boost::json::object& finding() const { return finding_; }

    /// Returns the record of a later finding that explains finding(); empty if no finding does.
    [[nodiscard]] const boost::json::object& explaining_finding() const {
        return explaining_finding_;
    }

    /// Returns the JSON object that names the finding's item, and the item's wrong value if it is
    /// known: finding(), explaining_finding(), or the most likely candidate in one of them. Null if
    /// none of them names an item.
    [[nodiscard]] const boost::json::object* suspect() const;

    /// True if suspect() is only the most likely of several candidates.
    [[nodiscard]] bool is_uncertain_suspect() const;

    /// Returns the item of suspect(); null if suspect() is null.
    [[nodiscard]] const boost::json::object* item() const;

    /// Returns the item in the last verified snapshot before the finding; null if it is missing.
    [[nodiscard]] const boost::json::object* item_before() const { return find_item(before_); }

    /// Returns the item in the first verified snapshot after the finding; null if it is missing.
    [[nodiscard]] const boost::json::object* item_after() const {
        return after_tick_ ? find_item(after_) : nullptr;
    }

    [[nodiscard]] std::optional<std::int64_t> before_tick() const { return before_tick_; }

    [[nodiscard]] std::optional<std::int64_t> after_tick() const { return after_tick_; }

    /// Returns the tick of the first snapshot, from the finding's on, that the client acknowledged
    /// although twscope rejected it; nullopt if the client acknowledged none of these.
    [[nodiscard]] std::optional<std::int64_t> acknowledged_tick() const { return acknowledged_; }

    /// True if twscope rejected the finding's snapshot.
    [[nodiscard]] bool is_rejected() const { return !rejected_.empty(); }

    /// True if the records contain acknowledgements of the client after the finding.
    [[nodiscard]] bool has_acknowledgements() const { return has_acknowledgements_; }

    /// Returns the datagrams of the finding's snapshot; empty if no capture was read.
    [[nodiscard]] const std::vector<SnapshotDatagram>& datagrams() const { return datagrams_; }

    void set_datagrams(std::vector<SnapshotDatagram> datagrams) {
        datagrams_ = std::move(datagrams);
    }

    /// Returns the events around the finding as text: one line for each event, with its time.
    [[nodiscard]] const std::vector<std::string>& events() const { return events_; }

    /// Returns a description of the session, for example
    /// "session 3, 127.0.0.1:50000 at 127.0.0.1:8303, 0.6+ddnet, map dm1".
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
    void store_verification(std::int64_t tick, bool ok, const Items& items);
    void on_finding(const boost::json::object& record, std::int64_t number, Session& session);
    void on_input(const boost::json::object& record, std::int64_t number, Session& session);
    void add_event(const boost::json::object& record, std::int64_t number, Session& session,
                   const std::string& what);
    void add_explainable(const boost::json::object& record, std::int64_t number);
    void count_kind(const boost::json::object& record, std::int64_t number);
    [[nodiscard]] bool is_better_finding(const boost::json::object& record,
                                         std::int64_t number) const;
    [[nodiscard]] const boost::json::object* find_item(const Items& items) const;

    FindingSelection wanted_;
    std::map<std::int64_t, Session> sessions_;
    /// The number of the finding's session; kNoSession before the finding is read.
    std::int64_t number_ = kNoSession;
    boost::json::object finding_;
    boost::json::object explaining_finding_;
    Items before_;
    Items after_;
    std::optional<std::int64_t> before_tick_;
    std::optional<std::int64_t> after_tick_;
    std::vector<std::string> events_;
    std::vector<std::int64_t> rejected_; ///< ticks of rejected snapshots, first the finding's tick
    std::optional<std::int64_t> acknowledged_;
    bool has_acknowledgements_ = false;
    std::vector<SnapshotDatagram> datagrams_;
    int num_listed_acks_ = 0; ///< number of acknowledgements in `events_` after the finding
    std::string title_;
    std::vector<ExplainableFinding> explainable_;
    std::uint64_t num_explainable_ = 0;
    std::vector<FindingKind> kinds_;
    std::uint64_t num_others_ = 0;
    std::pair<std::int64_t, std::optional<std::int64_t>> last_explainable_{};
};

/// Stores for each session the last datagrams of a capture that contain parts of snapshots.
class SnapshotDatagrams final : public inspect::Observer {
  public:
    /// The position of a datagram in its capture.
    struct DatagramPosition {
        std::string_view file{};
        std::uint64_t frame = 0; ///< number of the frame in the file, from 1; 0 if unknown
    };

    /// The most datagrams stored for each session: as many as the largest snapshot has parts.
    static constexpr std::size_t kMaxDatagrams = snapshot::kMaxParts;
    /// The most sessions whose datagrams are stored. An attacker can open any number of sessions.
    static constexpr std::size_t kMaxSessions = 4096;

    /// `place`: returns the position of a datagram by its time. `on_read`: called after each one.
    SnapshotDatagrams(std::function<DatagramPosition(record::Timestamp)> place,
                      std::function<void()> on_read)
        : place_{std::move(place)}, on_read_{std::move(on_read)} {}

    /// Returns the stored datagrams of this session's snapshot of `tick`, sorted by part.
    [[nodiscard]] std::vector<SnapshotDatagram> find_datagrams(std::int64_t session,
                                                               std::int64_t tick) const;

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_part(const inspect::PartSeen& part) override;

    void on_datagram_end() override { on_read_(); }

  private:
    struct StoredDatagram {
        snapshot::Tick tick = 0;
        SnapshotDatagram datagram;
    };

    std::function<DatagramPosition(record::Timestamp)> place_;
    std::function<void()> on_read_;
    std::uint32_t session_ = 0;          ///< session of the datagram being read
    SnapshotDatagram current_;           ///< the datagram being read
    std::span<const std::byte> payload_; ///< decompressed payload of the datagram being read
    std::map<std::uint32_t, std::deque<StoredDatagram>> kept_; ///< by session, oldest first
};

} // namespace tw::analyze
