#pragma once

#include "proxy/analyze/map_visits.h"
#include "proxy/analyze/type_sizes.h"
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
    snapshot::Tick tick = 0; ///< the snapshot's tick
    std::string file{};
    std::uint64_t frame = 0; ///< number of the frame in the file, from 1; 0 if unknown
    std::int64_t time = 0;   ///< nanoseconds since 1970
    std::size_t bytes = 0;   ///< size of the UDP payload
    std::size_t header_bytes = 0;
    bool is_compressed = false;
    std::int32_t part = 0; ///< number of the snapshot's part, from 0
    std::int32_t num_parts = 1;
    std::size_t part_offset = 0; ///< offset of the delta's part in the datagram
    std::size_t part_bytes = 0;  ///< size of the delta's part
};

/// The events around one finding about snapshots, and what is known about its item.
struct Explanation {
    /// The items of a snapshot, as records contain them.
    using Items = std::map<ItemTypeAndId, boost::json::object>;

    /// A finding that the user can select to be explained.
    struct ExplainableFinding {
        std::int64_t session = 0;
        std::optional<std::int64_t> tick{};
        std::string id;

        friend bool operator==(const ExplainableFinding&, const ExplainableFinding&) = default;
    };

    /// The number of the findings about snapshots with the same id and item type.
    struct FindingTally {
        std::string id;
        std::string type;         ///< the item's type, for snapshot.size_differs
        bool is_info = false;     ///< the findings have the severity info
        std::uint64_t count = 0;  ///< number of finding records of this kind
        std::int64_t session = 0; ///< session of the first finding of this kind
        std::int64_t tick = 0;    ///< tick of the first finding of this kind
    };

    FindingSelection selection{};
    std::size_t num_sessions = 0;
    /// The first warnings and errors about snapshots, at most one per tick and session.
    std::vector<ExplainableFinding> explainable_findings{};
    std::uint64_t num_explainable_findings = 0;
    /// The kinds of findings, in the order of their first occurrence. Their number is limited.
    std::vector<FindingTally> finding_kinds{};
    std::uint64_t num_other_findings = 0; ///< number of findings that are not about snapshots

    boost::json::object finding{}; ///< the finding's record; empty if no finding was selected
    std::int64_t session = 0;      ///< the finding's session; 0 if its number was reused
    /// The error because of which the base of the finding's snapshot was rejected; nullopt if the
    /// base was not rejected.
    std::optional<ExplainableFinding> base_error{};
    /// A description of the session, for example
    /// "session 3, 127.0.0.1:50000 at 127.0.0.1:8303, 0.6+ddnet, map dm1".
    std::string title{};
    boost::json::object explaining_finding{}; ///< a finding that explains `finding`; or empty
    std::vector<std::string> events{};        ///< one line for each event, with its time
    Items items_before{};                     ///< the last verified snapshot before the finding
    std::optional<std::int64_t> before_tick{};
    Items items_after{}; ///< the first verified snapshot after the finding
    std::optional<std::int64_t> after_tick{};
    /// Ticks of the snapshots that were rejected, from the finding's snapshot on. Empty if that
    /// snapshot was not rejected.
    std::vector<std::int64_t> rejected_ticks{};
    /// The first of the rejected snapshots that the client acknowledged.
    std::optional<std::int64_t> acknowledged_tick{};
    /// Whether the records contain acknowledgements of the client after the finding.
    bool has_acknowledgements = false;
    /// The datagrams of the snapshot of datagram_tick(); empty if no capture was read.
    std::vector<SnapshotDatagram> datagrams{};
    /// The object sizes in the finding's session that are its cause; empty if unknown, or if sizes
    /// are not the cause. The caller sets them, because records do not contain them.
    std::vector<SizeDifference> causing_sizes{};
    std::size_t num_other_resized_sessions = 0; ///< number of other sessions with these sizes

    [[nodiscard]] bool has_finding() const { return !finding.empty(); }

    /// Returns the finding's tick; −1 if the finding has none.
    [[nodiscard]] std::int64_t finding_tick() const;

    /// Returns the tick of the snapshot whose datagrams are shown. For snapshot.size_differs, this
    /// is the first snapshot with the named size, if known; otherwise the finding's snapshot.
    [[nodiscard]] std::int64_t datagram_tick() const;

    /// Returns the finding's usual causes; empty if they are unknown or another error is the cause.
    [[nodiscard]] std::string_view usual_cause() const;

    /// Returns `explaining_finding` if there is one, else `finding`.
    [[nodiscard]] const boost::json::object& most_certain_finding() const;

    /// Returns the JSON object that names the wrong item and, if known, its wrong value. If
    /// most_certain_finding() names an item, this is that finding. Otherwise it is the finding's
    /// likeliest candidate, or null if the finding has no candidates.
    [[nodiscard]] const boost::json::object* suspect() const;

    /// True if suspect() is only the most likely of several candidates.
    [[nodiscard]] bool is_suspect_uncertain() const;

    [[nodiscard]] const boost::json::object* suspect_item() const;
    /// Returns the item of suspect() in `items`; null if it is missing there.
    [[nodiscard]] const boost::json::object* find_suspect_item(const Items& items) const;
};

/// Collects what records say about one finding. Explains the selected finding; without a selection,
/// the first finding that explains others, or else the first error, or else the first warning.
/// Records are passed as JSON lines, so captures and recordings give the same result.
class ExplanationReader {
  public:
    explicit ExplanationReader(const FindingSelection& selection) {
        explanation_.selection = selection;
    }

    /// Reads a line. Ignores lines that are not records, and records that are not needed.
    void on_line(std::string_view line);

    /// Returns the explanation. The caller may set its datagrams, which lines do not contain.
    [[nodiscard]] Explanation& explanation() { return explanation_; }

    /// True if the selection names a session without any record.
    [[nodiscard]] bool lacks_selected_session() const;

  private:
    struct Session {
        std::string peers_text;
        std::string map;
        Explanation::Items items;
        std::optional<std::int64_t> tick;   ///< tick of `items`
        std::int64_t acknowledged_tick = 0; ///< tick of the client's latest acknowledgement
        std::deque<std::string> recent_events;
        /// The tick and the time of day of the first of the rejected snapshots that form the latest
        /// event; nullopt if the latest event is something else.
        std::optional<std::pair<std::int64_t, std::string>> rejected_since{};
        /// True if the session's latest event is also the last of Explanation::events.
        bool is_last_listed = false;
        /// The first error after the last verified snapshot of the map.
        std::optional<Explanation::ExplainableFinding> error;
    };

    void on_session(const boost::json::object& record, std::int64_t number, Session& session);
    void on_snapshot(const boost::json::object& record, std::int64_t number, Session& session);
    void store_verification(std::int64_t tick, bool ok, const Explanation::Items& items);
    void on_finding(const boost::json::object& record, std::int64_t number, Session& session);
    void on_input(const boost::json::object& record, std::int64_t number, Session& session);
    void add_event(const boost::json::object& record, std::int64_t number, Session& session,
                   const std::string& what);
    /// If the latest event reports rejected snapshots, adds a rejected snapshot to the event.
    /// Otherwise returns false.
    [[nodiscard]] bool extend_rejected_event(std::int64_t tick, std::int64_t number,
                                             Session& session);
    void add_explainable_finding(const boost::json::object& record, std::int64_t number);
    void count_finding_by_kind(const boost::json::object& record, std::int64_t number);
    [[nodiscard]] bool is_better_finding(const boost::json::object& record,
                                         std::int64_t number) const;

    /// Returns whether the session is that of the finding.
    [[nodiscard]] bool is_finding_session(std::int64_t number) const {
        return explanation_.has_finding() && number == explanation_.session;
    }

    Explanation explanation_;
    std::map<std::int64_t, Session> sessions_;
    int num_listed_acks_ = 0; ///< number of acknowledgements among the events after the finding
    /// Index of the event of the last listed acknowledgement. on_input() appends "(later ones are
    /// not listed)" to the event if another acknowledgement follows, and then resets the index.
    std::optional<std::size_t> last_listed_ack_;
    /// Session and tick of the latest explainable finding.
    std::pair<std::int64_t, std::optional<std::int64_t>> last_explainable_{};
};

/// Stores for each session of a capture the latest datagrams that contain parts of snapshots.
class SnapshotDatagrams final : public inspect::Observer {
  public:
    /// The most sessions whose datagrams are stored. An attacker can open any number of sessions.
    static constexpr std::size_t kMaxSessions = 4096;

    /// `set_position`: looks up the datagram's `time`, and sets its `file` and `frame`. `on_read`:
    /// called after each datagram.
    SnapshotDatagrams(std::function<void(SnapshotDatagram& datagram)> set_position,
                      std::function<void()> on_read)
        : set_position_{std::move(set_position)}, on_read_{std::move(on_read)} {}

    /// Returns the stored datagrams of this session's snapshot of `tick`, sorted by part.
    [[nodiscard]] std::vector<SnapshotDatagram> find_datagrams(std::int64_t session,
                                                               std::int64_t tick) const;

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_snap_message(const inspect::ObservedSnapMessage& part) override;

    void on_datagram_end() override { on_read_(); }

  private:
    std::function<void(SnapshotDatagram& datagram)> set_position_;
    std::function<void()> on_read_;
    std::uint32_t session_ = 0;          ///< session of the datagram being read
    SnapshotDatagram current_;           ///< the datagram being read
    std::span<const std::byte> payload_; ///< decompressed payload of the datagram being read
    std::map<std::uint32_t, std::deque<SnapshotDatagram>> stored_; ///< by session, oldest first
};

/// Returns the flags, or the page address, with which users get the explanation of a finding.
using SelectionFormatter = std::function<std::string(std::int64_t session, std::int64_t tick)>;

/// Returns a list of the findings that can be explained, for users whose selection matched no
/// finding. `select`: null to name findings by session and tick. `list_command`: the command that
/// lists all findings; empty to name no command.
[[nodiscard]] std::string explainable_findings_text(const Explanation& explanation,
                                                    const SelectionFormatter& select = {},
                                                    std::string_view list_command = {});

/// Returns the explanation as one page of text.
[[nodiscard]] std::string explanation_text(const Explanation& explanation,
                                           const SelectionFormatter& select = {});

/// Returns the explanation, or the findings that can be explained, as one JSON object.
[[nodiscard]] boost::json::object explanation_json(const Explanation& explanation);

/// Returns explanation_text() of the session's finding at this tick. `lines`: records, one a line.
/// Returns explainable_findings_text() if the records do not contain the finding.
[[nodiscard]] std::string explain_finding_in_lines(std::string_view lines, std::int64_t session,
                                                   std::int64_t tick);

/// Returns a time in nanoseconds since 1970 as "16:33:18.902224".
[[nodiscard]] std::string clock_text(std::int64_t time);

// Parts of explanation_text():

/// Returns the likeliest candidates of a finding; null if it has none.
[[nodiscard]] const boost::json::array* likeliest_candidates(const boost::json::object& finding);

/// Returns where to look for the cause of a finding about snapshots; empty if nothing is known.
/// `id`: the finding's id. `name`: the record's member `name`, which tells causes apart.
[[nodiscard]] std::string_view find_cause_hint(std::string_view id, std::string_view name);

/// If object sizes are the finding's cause, returns a text about these objects; otherwise an empty
/// text.
[[nodiscard]] std::string size_cause_text(const Explanation& story);

/// Returns whether the objects file is the cause: the server sends the agreed sizes, but the file
/// describes other sizes.
[[nodiscard]] bool is_objects_file_wrong(const Explanation& story);

/// Returns what to change if object sizes are the finding's cause; otherwise an empty text.
[[nodiscard]] std::string size_change_text(const Explanation& story);

/// For a snapshot.size_differs finding, returns a line about the first snapshot with that size.
/// Returns an empty text for other findings.
[[nodiscard]] std::string first_snapshot_text(const Explanation& story);

} // namespace tw::analyze
