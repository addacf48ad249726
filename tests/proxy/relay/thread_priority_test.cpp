// Covers: proxy/relay/options.cpp
#include "proxy/relay/options.h"

#include <algorithm>
#include <thread>

#include <doctest/doctest.h>
#include <sys/resource.h>

namespace {

using namespace tw;

constexpr int kLeastPriority = 19;

int niceness() {
    return ::getpriority(PRIO_PROCESS, 0);
}

TEST_CASE("analysing threads get a lower priority, forwarding threads keep theirs") {
    const int before = niceness();
    int forwarding = 0;
    int looking = 0;
    int writing = 0;
    std::thread{[&] {
        relay::raise_thread_priority();
        forwarding = niceness();
    }}.join();
    std::thread{[&] {
        relay::lower_thread_priority();
        looking = niceness();
        std::thread{[&] { writing = niceness(); }}.join();
    }}.join();
    CHECK(forwarding == before);
    CHECK(looking == std::min(before + 5, kLeastPriority));
    CHECK(writing == looking);
    CHECK(niceness() == before);
}

} // namespace
