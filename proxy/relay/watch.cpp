#include "proxy/relay/watch.h"

namespace tw::relay {

namespace {

// Sixteenths of the ring. Up to the first all are shown: a pause of the observer takes nobody's
// copies. From the last on nobody is: what is on its way still fits.
constexpr std::size_t kParts = 16;
constexpr std::size_t kFirst = 10;
constexpr std::size_t kLast = 15;

} // namespace

void Watch::List::push_newest(TapSession& session) noexcept {
    session.older = newest;
    session.newer = nullptr;
    (newest == nullptr ? oldest : newest->newer) = &session;
    newest = &session;
    ++size;
}

void Watch::List::push_oldest(TapSession& session) noexcept {
    session.older = nullptr;
    session.newer = oldest;
    (oldest == nullptr ? newest : oldest->older) = &session;
    oldest = &session;
    ++size;
}

void Watch::List::remove(TapSession& session) noexcept {
    (session.older == nullptr ? oldest : session.older->newer) = session.newer;
    (session.newer == nullptr ? newest : session.newer->older) = session.older;
    session.older = session.newer = nullptr;
    --size;
}

void Watch::add(TapSession& session) noexcept {
    session.listed = true;
    session.aside = aside_.size != 0;
    session.aside_told = false;
    list_of(session).push_newest(session);
}

void Watch::remove(TapSession& session) noexcept {
    if (session.listed) {
        list_of(session).remove(session);
        session.listed = false;
    }
}

void Watch::set_aside(TapSession& session) noexcept {
    shown_.remove(session);
    session.aside = true;
    session.aside_told = false;
    // The newest ones went before it.
    aside_.push_oldest(session);
}

void Watch::bring_back(std::size_t count) noexcept {
    for (; count != 0 && aside_.oldest != nullptr; --count) {
        TapSession& session = *aside_.oldest;
        aside_.remove(session);
        session.aside = false;
        shown_.push_newest(session);
    }
}

std::size_t Watch::affordable(std::size_t backlog, std::size_t capacity) const noexcept {
    const std::size_t part = capacity / kParts;
    const std::size_t all = shown_.size + aside_.size;
    if (backlog <= kFirst * part) {
        return all;
    }
    if (backlog >= kLast * part) {
        return 0;
    }
    const std::size_t room = (kLast - kFirst) * part;
    return (all * (kLast * part - backlog) + room - 1) / room;
}

} // namespace tw::relay
