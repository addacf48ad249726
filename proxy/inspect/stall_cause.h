#pragma once

#include "proxy/inspect/receipts.h"
#include "proxy/record/records.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::inspect {

/// Why a client had nothing new to show.
enum class StallCause : std::uint8_t {
    rejected,       ///< snapshots came that the client had to reject
    unknown_base,   ///< snapshots came whose base the client does not have
    late,           ///< no snapshot is missing, they came late
    server_silent,  ///< the server did not run, or sent nothing to anybody
    slower_rate,    ///< the server made no snapshot for this client
    lost,           ///< between server and twscope
    lost_behind,    ///< between twscope and client
    unacknowledged, ///< the client acknowledges none, and does not seem to have lost them
    client_silent,  ///< the client sends nothing, so the server makes one snapshot a second
    unknown,
    count,
};

[[nodiscard]] std::string_view stall_cause_name(StallCause cause);

/// What the traffic says about a stall.
struct StallVerdict {
    StallCause cause = StallCause::unknown;
    std::string_view rivals{}; ///< other causes that the same evidence fits
    std::string detail{};      ///< the evidence
};

/// What is known of a time in which no usable snapshot passed here.
struct StallEvidence {
    record::Timestamp time = 0; ///< from the last snapshot to the next
    bool has_ended = true;      ///< a snapshot came at last
    bool is_late = false;       ///< it is the next one: none is missing
    bool has_hole = false;      ///< a part or a reliable chunk of that time is missing
    bool has_client = true;     ///< the client's inputs pass here
    bool lacks_base = false;    ///< the server goes on without the acknowledgement that passed here
    bool is_answering = false;  ///< the server has answered inputs of this session before
    InputReceipts::Outcome receipts{};  ///< inputs whose answers the missing datagrams held
    record::Timestamp longest_wait = 0; ///< of an input of that time, for the server
    std::optional<std::size_t> quiet_sessions{}; ///< the server sent nothing to any of so many
    bool was_stopped = false; ///< the server did not run, as another session has shown
    bool was_cut_off = false; ///< its datagrams were lost, as another session has shown
};

/// Says why, as soon as the evidence decides. `is_final`: no more evidence comes; then the verdict may
/// be that nothing decides.
[[nodiscard]] std::optional<StallVerdict> judge_stall(const StallEvidence& evidence, bool is_final);

} // namespace tw::inspect
