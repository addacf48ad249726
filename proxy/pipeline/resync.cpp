#include "proxy/pipeline/resync.h"

#include "proxy/wire/message.h"
#include "proxy/wire/resync.h"

#include <charconv>
#include <system_error>
#include <tuple>

namespace tw::pipeline {

namespace {

/// The least time between two requests for a session, as the relay demands.
constexpr record::Timestamp kBetween =
    record::Timestamp{relay::ResyncState::kBetweenMs} * 1'000'000 + 100'000'000;

} // namespace

static_assert(relay::Resync::kNothing == wire::kNoSnapshot);

relay::Resync game_resync() {
    std::ignore = wire::message_table(); // created now, not while a datagram waits
    return {.rewrite = wire::acknowledge, .find_answer = wire::find_whole_snapshot};
}

void ResyncRequester::look(std::uint32_t session, record::Timestamp time, bool blind) {
    if (!blind) {
        return;
    }
    const auto [known, first] = asked_.try_emplace(session, time);
    if (!first && time - known->second < kBetween) {
        return;
    }
    known->second = time;
    if (!ask_(session)) {
        asked_.erase(known); // retried with the next datagram
    }
}

std::optional<std::uint32_t> ResyncGrants::grant(std::string_view wish) {
    std::uint32_t session = 0;
    const char* const end = wish.data() + wish.size();
    const auto [read, error] = std::from_chars(wish.data(), end, session);
    if (error != std::errc{} || read != end || session == 0 || left_ == 0) {
        return std::nullopt;
    }
    --left_;
    return session;
}

} // namespace tw::pipeline
