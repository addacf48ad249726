#include "proxy/pipeline/resync.h"

#include "proxy/wire/message.h"
#include "proxy/wire/resync.h"

#include <charconv>
#include <system_error>
#include <tuple>

namespace tw::pipeline {

namespace {

/// The least time between two requests of a full snapshot for a session. It is a little longer than
/// the time for which the relay ignores further requests.
constexpr record::Timestamp kMinInterval =
    record::Timestamp{relay::ResyncState::kMinRequestIntervalMs} * 1'000'000 + 100'000'000;

} // namespace

static_assert(relay::ResyncFunctions::kNoSnapshot == wire::kNoSnapshot);

relay::ResyncFunctions make_snapshot_resync_functions() {
    // Creates the message table now, so that the first request is not delayed.
    std::ignore = wire::message_table();
    return {.rewrite_acknowledgement = wire::rewrite_acknowledgement,
            .find_full_snapshot = wire::find_full_snapshot_tick};
}

void ResyncRequester::on_server_datagram(std::uint32_t session, record::Timestamp time,
                                         bool undecodable) {
    if (!undecodable) {
        return;
    }
    const auto [known, first] = requested_at_.try_emplace(session, time);
    if (!first && time - known->second < kMinInterval) {
        return;
    }
    known->second = time;
    if (!request_(session)) {
        requested_at_.erase(known); // on failure, the next datagram causes a new request
    }
}

std::optional<std::uint32_t> ResyncLimiter::accept_request(std::string_view request) {
    std::uint32_t session = 0;
    const char* const end = request.data() + request.size();
    const auto [read, error] = std::from_chars(request.data(), end, session);
    if (error != std::errc{} || read != end || session == 0 || remaining_requests_ == 0) {
        return std::nullopt;
    }
    --remaining_requests_;
    return session;
}

} // namespace tw::pipeline
