#pragma once

#include "proxy/record/stats.h"
#include "proxy/relay/counters.h"
#include "proxy/web/board.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tw::web {

/// What the relay counted in one direction since its start.
struct DirectionState {
    std::uint64_t datagrams = 0; ///< passed on
    std::uint64_t bytes = 0;     ///< payload passed on
    std::uint64_t dropped = 0;   ///< not passed on: the socket's buffer was full
    std::uint64_t refused = 0;   ///< not passed on: the system would not
    std::uint64_t copies_lost = 0;
};

struct RelayState {
    std::array<DirectionState, 2> directions{}; ///< c2s, s2c
    std::uint64_t sessions_open = 0;
    std::uint64_t sessions_opened = 0;
    std::uint64_t sessions_closed = 0;
    relay::AdmissionTotals<std::uint64_t> admission{};
    std::uint64_t sessions_refused = 0;
    std::uint64_t sessions_failed = 0;
    std::uint64_t icmp_refused = 0;
    std::uint64_t receive_errors = 0;
    std::uint64_t truncated = 0;
    std::uint64_t rewritten = 0;
    std::uint64_t kernel_dropped = 0;
};

/// What a stream of records says of a server besides.
struct CollectedState {
    std::string page{}; ///< where it has a page of its own; empty: nobody knows
    std::uint64_t records = 0;
    std::int64_t last_ms = 0; ///< time of the latest of them, since 1970
};

/// One of several servers.
struct ServerState {
    std::string name{}; ///< of the configuration
    std::string address{};
    std::vector<std::string> listen{};
    bool silent = false; ///< it does not answer any session
    RelayState relay{};
    std::optional<CollectedState> collected{}; ///< nothing: it is this process that forwards for it
};

/// A server that does not answer any session.
struct SilenceState {
    std::int64_t since_ms = 0;    ///< since 1970: the first datagram without an answer
    std::uint64_t unanswered = 0; ///< datagrams to it since then
    std::uint64_t refused = 0;    ///< "port unreachable" by ICMP since then
};

/// Somebody changed the line from the page.
struct ImpairmentChange {
    std::int64_t time_ms = 0; ///< since 1970
    std::string from{};       ///< an address, or "the unix socket"
    std::string settings{};
};

/// What is recorded from the page.
struct PageRecordingState {
    bool captures = false;                          ///< they may be made
    std::optional<std::int64_t> capture_since_ms{}; ///< since 1970; nothing: none is being made
    std::optional<std::int64_t> demos_since_ms{};
    std::uint64_t lost = 0; ///< datagrams, snapshots and blocks that are missing
    std::string stopped{};  ///< why it ended by itself; empty: it did not
};

/// Where records go.
struct RecordingState {
    std::string output{}; ///< empty: nowhere
    bool failed = false;
    std::uint64_t lost = 0;                   ///< records that could not be written
    std::optional<record::BusTotals> bus{};   ///< nothing: they go to none
    std::optional<PageRecordingState> page{}; ///< nothing: the page records nothing
    bool has_flight = false;                  ///< there is a flight recorder
};

/// The stream that everything shown comes from: nothing is forwarded here.
struct StreamState {
    std::string name{};
    std::string trouble{}; ///< why nothing comes from it; empty: it is well
    std::uint64_t records = 0;
    std::uint64_t left_out = 0; ///< of servers that are too many to be shown
};

/// The run as a whole at one moment: what the page, the scraper and scripts see.
struct State {
    std::string version{};
    std::int64_t now_ms = 0;     ///< since 1970
    std::int64_t started_ms = 0; ///< since 1970
    std::vector<std::string> listen{};
    std::string server{};                        ///< the first
    std::optional<SilenceState> server_silent{}; ///< nothing: all answer, or nobody asks them
    std::vector<ServerState> servers{};          ///< those with names
    std::string impairment{};                    ///< as relay::parse_impairment reads it
    std::optional<ImpairmentChange> impaired{};  ///< the last change from the page
    std::uint32_t observer = 1; ///< which one of the run this is: more than 1, it was started again
    std::size_t viewers = 0;    ///< of the live page
    std::uint64_t viewers_lost = 0; ///< frames that they were too slow for
    bool inspecting = true;
    std::optional<StreamState> stream{}; ///< nothing: it is this process that looks
    RelayState relay{};
    RecordingState recording{};
    std::uint64_t http_turned_away = 0; ///< connections to the page that were too many
    View view{};
};

/// The state as one JSON object, for the page and for scripts. Always valid UTF-8; keys are only
/// ever added.
[[nodiscard]] std::string state_json(const State& state);

/// Its sessions alone.
[[nodiscard]] std::string sessions_json(const State& state);
/// Its findings alone: how often each occurred and what usually causes it, and the latest.
[[nodiscard]] std::string findings_json(const State& state);

/// The state as Prometheus' text format. Base units, `_total` on counters; the only labels are
/// direction, result, finding, item_type and, where the configuration names servers, server, so that
/// no peer can add a series: items that nobody described count as one type, `unknown`.
[[nodiscard]] std::string metrics_text(const State& state);

} // namespace tw::web
