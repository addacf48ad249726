#include "proxy/relay/rounds.h"

#include <algorithm>
#include <utility>

namespace tw::relay {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestTick{5};
constexpr milliseconds kLongestTick{100};
/// A session is closed at most this part of its time too late.
constexpr int kLooksPerTimeout = 8;
constexpr milliseconds kLongestBetweenLooks{1000};

} // namespace

Rounds::Rounds(milliseconds shortest, Time started)
    : started_{started}, tick_{std::clamp(shortest / kLooksPerTimeout, kShortestTick,
                                          kLongestTick)} {}

Timestamp Rounds::begin_batch(Time now) noexcept {
    now_ = {.steady = now,
            .ms = static_cast<std::uint32_t>(
                std::chrono::duration_cast<milliseconds>(now - started_).count()),
            .utc = now_utc()};
    return now_.utc;
}

std::uint64_t Rounds::ticks_at(Time time) const noexcept {
    return static_cast<std::uint64_t>((time - started_) / tick_);
}

void Rounds::enter(Session& session, milliseconds timeout) noexcept {
    ++sessions_;
    look_again(session, timeout);
}

void Rounds::look_again(Session& session, milliseconds timeout) noexcept {
    wheel_.add(session, static_cast<std::uint64_t>(
                            std::min(timeout / kLooksPerTimeout, kLongestBetweenLooks) / tick_));
}

void Rounds::leave(std::unique_ptr<Session> session) noexcept {
    wheel_.remove(*session);
    session->next_leaving = std::move(left_);
    left_ = std::move(session);
}

void Rounds::free_left(bool all) noexcept {
    for (auto* place = &left_; *place != nullptr;) {
        Session& session = **place;
        if (!all && has_waiting_datagrams(session)) {
            place = &session.next_leaving;
            continue;
        }
        session.upstreams->close(session.upstream);
        *place = std::move(session.next_leaving);
        --sessions_;
    }
}

} // namespace tw::relay
