#include "proxy/admin/seats.h"

#include <algorithm>

namespace tw::admin {

Seats::Place Seats::arrive(Number number, const relay::Source& peer) {
    const auto count = [this](auto&& rule) {
        return static_cast<std::size_t>(std::count_if(guests_.begin(), guests_.end(), rule));
    };
    const auto usual = [](const Guest& guest) { return !guest.spare; };
    const auto spare = [](const Guest& guest) { return guest.spare; };
    const auto of_peer = [&](const Guest& guest) { return guest.peer == peer; };
    if (count(usual) < kUsual &&
        count([&](const Guest& guest) { return usual(guest) && of_peer(guest); }) < kOfPeer) {
        guests_.push_back({number, peer, false, false});
        return {.seated = true};
    }
    const bool peer_full =
        count([&](const Guest& guest) { return spare(guest) && of_peer(guest); }) >= kSpareOfPeer;
    std::optional<Number> leaves;
    if (peer_full || count(spare) >= kSpare) {
        const auto waiting = std::find_if(guests_.begin(), guests_.end(), [&](const Guest& guest) {
            return guest.spare && !guest.asked && (!peer_full || of_peer(guest));
        });
        if (waiting == guests_.end()) {
            return {};
        }
        leaves = waiting->number;
        guests_.erase(waiting);
    }
    guests_.push_back({number, peer, true, false});
    return {.seated = true, .spare = true, .leaves = leaves};
}

void Seats::ask(Number number) noexcept {
    for (Guest& guest : guests_) {
        guest.asked = guest.asked || guest.number == number;
    }
}

void Seats::leave(Number number) noexcept {
    std::erase_if(guests_, [number](const Guest& guest) { return guest.number == number; });
}

} // namespace tw::admin
