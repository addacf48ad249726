#pragma once

#include <tuple>

#include <sys/resource.h>

namespace tw::run {

/// Where cores are scarce the relay goes first: who comes later only records later. It can always be
/// asked for; on Linux it is the calling thread's alone.
inline void let_relay_go_first() {
    constexpr int kNice = 5; // a third of the relay's share
    std::ignore = ::setpriority(PRIO_PROCESS, 0, kNice);
}

} // namespace tw::run
