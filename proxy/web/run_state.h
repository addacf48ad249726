#pragma once

#include "proxy/record/stats.h"
#include "proxy/relay/counters.h"
#include "proxy/web/status_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tw::web {

/// The relay's counters for all servers, or for one server.
struct RelayState : relay::Counters {
    std::uint64_t sessions_open = 0;
};

/// A collector's data about a server, from the stream of the server's records.
struct CollectedServerState {
    std::string page{}; ///< URL of the server's own page; empty if unknown
    std::uint64_t records = 0;
    std::int64_t last_record_ms = 0; ///< time of the latest record, in milliseconds since 1970
};

/// The state of one server that has a name in the configuration, or whose records are collected.
struct NamedServerState {
    std::string name{}; ///< name in the configuration
    std::string address{};
    std::vector<std::string> listen{};
    bool is_silent = false; ///< true if the server answers none of its sessions
    RelayState relay{};
    /// The collector's data about the server; nullopt if this process forwards the server's
    /// traffic.
    std::optional<CollectedServerState> collected{};
};

/// A period in which a server answers none of its sessions.
struct ServerSilence {
    /// Time of the first unanswered datagram, in milliseconds since 1970.
    std::int64_t since_ms = 0;
    std::uint64_t unanswered = 0; ///< number of datagrams to the server since `since_ms`
    std::uint64_t refused = 0;    ///< number of ICMP errors "port unreachable" since `since_ms`
};

/// New settings of the impairment that a user made on the page.
struct ImpairmentChange {
    std::int64_t time_ms = 0;  ///< in milliseconds since 1970
    std::string client_name{}; ///< the client's address, or "the unix socket"
    std::string settings{};
};

/// The state of the recordings that viewers start and stop on the page.
struct PageRecordingState {
    bool allows_captures = false; ///< true if viewers may start captures
    /// The start of the current capture in milliseconds since 1970; nullopt if there is no capture.
    std::optional<std::int64_t> capture_since_ms{};
    std::optional<std::int64_t> demos_since_ms{};
    std::uint64_t lost = 0; ///< number of datagrams, snapshots and blocks missing in the recordings
    std::string stop_reason{}; ///< why twscope stopped the recordings; empty otherwise
};

/// The state of the outputs of records and captures.
struct RecordingState {
    /// File or bus to which records are written; empty if they are not written.
    std::string output{};
    std::string error{};             ///< why recording stopped; empty while it works
    std::uint64_t lost = 0;          ///< number of records that could not be written
    std::uint64_t written_bytes = 0; ///< bytes of records and of the capture written to files
    std::optional<record::BusTotals> bus{};   ///< nullopt if there is no message bus
    std::optional<PageRecordingState> page{}; ///< nullopt if the page cannot record
    bool has_flight_recorder = false;         ///< true if there is a flight recorder
};

/// The stream of collected records that the page shows if this process inspects no traffic.
struct RecordStreamState {
    std::string name{};
    std::string error{}; ///< why no records arrive; empty while records arrive
    std::uint64_t records = 0;
    /// Number of records that were ignored because the page cannot show more servers.
    std::uint64_t ignored_records = 0;
};

/// The state of the whole run at one moment, for the page, metrics and scripts.
struct RunState {
    std::string version{};
    std::int64_t now_ms = 0;     ///< in milliseconds since 1970
    std::int64_t started_ms = 0; ///< in milliseconds since 1970
    std::vector<std::string> listen{};
    std::string server{}; ///< address of the first server
    /// The silence of the first server that does not answer; nullopt if all servers answer or have
    /// no sessions.
    std::optional<ServerSilence> server_silence{};
    std::vector<NamedServerState> servers{}; ///< servers that have names
    std::string impairment{};                ///< in the format of relay::parse_impairment
    /// The latest change of the impairment that was made on the page.
    std::optional<ImpairmentChange> impairment_change{};
    /// The number of the observer process in this run; above 1 if it was restarted.
    std::uint32_t observer_number = 1;
    std::size_t viewers = 0; ///< number of viewers of the live page
    std::uint64_t dropped_viewer_messages =
        0;                     ///< number of messages dropped because viewers were too slow
    bool is_inspecting = true; ///< false if twscope only forwards traffic
    std::optional<RecordStreamState> stream{}; ///< nullopt if this process inspects traffic
    RelayState relay{};
    RecordingState recording{};
    /// Number of HTTP connections that were closed because there were too many.
    std::uint64_t rejected_http_connections = 0;
    StatusView view{};
};

/// Subtracts the sessions that a peer has closed from the relay's number of open sessions. The
/// relay cannot tell that a session was closed, and counts it until it times out.
void subtract_counts_of_closed_sessions(RunState& state);

/// Returns the state as one JSON object, for the page and for scripts. The text is always valid
/// UTF-8. New versions may add keys, but never remove one.
[[nodiscard]] std::string state_json(const RunState& state);

/// Returns the sessions of the state as JSON.
[[nodiscard]] std::string sessions_json(const RunState& state);
/// Returns the findings of the state as JSON: the count and usual cause of each finding id, and the
/// texts of the latest findings.
[[nodiscard]] std::string findings_json(const RunState& state);

/// Returns the state in the text format of Prometheus, in base units, with `_total` on counters.
/// The only labels are direction, result, finding, item_type and, if the configuration names
/// servers, server. A peer cannot add a series: all unknown items count as the type `unknown`.
[[nodiscard]] std::string metrics_text(const RunState& state);

} // namespace tw::web
