#include "proxy/inspect/stall_cause.h"

#include <array>

namespace tw::inspect {

using record::Timestamp;

namespace {

/// Inputs that must have passed before their answers say anything.
constexpr unsigned kFewInputs = 3;

constexpr std::array<std::string_view, static_cast<std::size_t>(StallCause::count)> kNames{
    "rejected", "unknown_base", "late",           "server_silent", "slower_rate",
    "lost",     "lost_behind",  "unacknowledged", "client_silent", "unknown"};

std::string ms_of(Timestamp time) {
    return std::to_string(time / 1'000'000) + " ms";
}

std::string share(unsigned some, unsigned all) {
    return std::to_string(some) + " of " + std::to_string(all);
}

/// The server read inputs of that time when it was over.
bool shows_stopped_server(const StallEvidence& evidence) {
    return evidence.longest_wait >= evidence.time / 2;
}

/// Its answers to at least half of the inputs never came. If it also lacks an acknowledgement that one
/// of them had, one is enough.
bool lacks_answers(const StallEvidence& evidence) {
    const InputReceipts::Outcome& receipts = evidence.receipts;
    return receipts.inputs >= (evidence.lacks_base ? 1 : kFewInputs) &&
           2 * receipts.answered <= receipts.inputs;
}

/// The server answered nearly all inputs, and at once.
bool has_answers(const InputReceipts::Outcome& receipts) {
    return receipts.inputs >= kFewInputs && 5 * receipts.answered >= 4 * receipts.inputs;
}

std::optional<StallVerdict> judge_by_answers(const StallEvidence& evidence, bool is_final) {
    const InputReceipts::Outcome& receipts = evidence.receipts;
    const bool is_complete =
        receipts.is_complete || (is_final && evidence.has_ended && evidence.is_answering);
    if (shows_stopped_server(evidence)) {
        return StallVerdict{.cause = StallCause::server_silent,
                            .detail = "the server did not run: it read an input " +
                                      ms_of(evidence.longest_wait) + " late"};
    }
    if (evidence.is_late) {
        if (!has_answers(receipts)) {
            return std::nullopt;
        }
        return StallVerdict{.cause = StallCause::late,
                            .detail = "held up on the way: the server read the inputs of that time "
                                      "at once"};
    }
    if (evidence.has_hole) {
        return StallVerdict{.cause = StallCause::lost,
                            .detail = "a part or a reliable message of that time was lost, too"};
    }
    if (is_complete && lacks_answers(evidence)) {
        const std::string unanswered = share(receipts.inputs - receipts.answered, receipts.inputs);
        return StallVerdict{.cause = StallCause::lost,
                            .detail =
                                evidence.lacks_base
                                    ? "the client's acknowledgement was lost, too: " + unanswered +
                                          " inputs were never answered"
                                    : unanswered + " inputs of that time were never answered"};
    }
    if (is_complete && has_answers(receipts)) {
        return StallVerdict{.cause = StallCause::slower_rate,
                            .detail = "the server made no snapshot for this client: it answered " +
                                      share(receipts.answered, receipts.inputs) +
                                      " inputs of that time at once"};
    }
    return std::nullopt;
}

StallVerdict judge_without_answers(const StallEvidence& evidence) {
    if (evidence.is_late) {
        return {.cause = StallCause::late,
                .detail = "no snapshot is missing: made late, or held up on the way"};
    }
    if (evidence.was_cut_off) {
        return {.cause = StallCause::lost,
                .detail = "another session of the server lost its answers in that time"};
    }
    if (evidence.was_stopped) {
        return {.cause = StallCause::server_silent,
                .detail = "the server did not run, as another session shows"};
    }
    if (evidence.quiet_sessions && *evidence.quiet_sessions > 1) {
        return {.cause = StallCause::server_silent,
                .rivals = "lost",
                .detail = "the server sent nothing to any of " +
                          std::to_string(*evidence.quiet_sessions) + " sessions"};
    }
    const std::string missing = evidence.has_client
                                    ? "no input of that time says whether the server ran"
                                    : "the client's datagrams did not pass here";
    if (evidence.quiet_sessions) {
        return {.rivals = "server_silent, lost", .detail = missing};
    }
    return {.rivals = "lost, slower_rate",
            .detail = missing + "; the server sent other datagrams meanwhile"};
}

} // namespace

std::string_view stall_cause_name(StallCause cause) {
    return kNames.at(static_cast<std::size_t>(cause));
}

std::optional<StallVerdict> judge_stall(const StallEvidence& evidence, bool is_final) {
    if (auto verdict = judge_by_answers(evidence, is_final)) {
        return verdict;
    }
    return is_final ? std::optional{judge_without_answers(evidence)} : std::nullopt;
}

} // namespace tw::inspect
