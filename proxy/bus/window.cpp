#include "proxy/bus/window.h"

#include <algorithm>

namespace tw::bus {

void Window::begin(std::uint64_t settled, std::uint64_t place) {
    slots_ = {};
    settled_ = sent_ = settled;
    place_ = place;
    under_way_ = 0;
}

void Window::send() {
    ++sent_;
    ++under_way_;
    slot(sent_) = {.state = State::sent};
}

void Window::skip(std::uint64_t place) {
    ++sent_;
    slot(sent_) = {.state = State::settled, .place = place};
    settle();
}

void Window::jump(std::uint64_t next) {
    begin(next - 1, place());
}

bool Window::acknowledge(std::uint64_t line, std::uint64_t place) {
    if (line <= settled_ || line > sent_ || slot(line).state != State::sent) {
        return false;
    }
    slot(line) = {.state = State::settled, .place = place};
    --under_way_;
    settle();
    return true;
}

void Window::settle() {
    while (settled_ < sent_ && slot(settled_ + 1).state == State::settled) {
        ++settled_;
        Slot& done = slot(settled_);
        place_ = done.place == 0 ? place_ : done.place;
        done = {};
    }
}

std::uint64_t Window::place() const {
    std::uint64_t least = place_;
    for (const Slot& each : slots_) {
        if (each.state == State::settled && each.place != 0) {
            least = std::min(least, each.place - 1);
        }
    }
    return least;
}

} // namespace tw::bus
