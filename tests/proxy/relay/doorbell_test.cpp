// Covers: proxy/relay/ring.cpp
#include "proxy/base/descriptors.h"
#include "proxy/relay/ring.h"

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace std::chrono_literals;

/// A time that never comes, so a missed wake-up makes the test time out.
const Clock::time_point kNever = Clock::now() + 24h;

TEST_CASE("who has something to do does not sleep") {
    ThreadWaker waker;
    int asked = 0;
    waker.sleep_until(kNever, [&] { return ++asked == 1; });
    CHECK(asked == 1);
}

TEST_CASE("a sleeper wakes when its time has come, also when that is over") {
    ThreadWaker waker;
    const auto begin = Clock::now();
    for (const auto time : {begin - 1h, begin, begin + 5ms}) {
        while (Clock::now() < time) {
            waker.sleep_until(time, [] { return false; });
        }
        waker.sleep_until(begin, [] { return false; });
    }
    CHECK(Clock::now() >= begin + 5ms);
}

TEST_CASE("every call is heard, whenever it comes") {
    ThreadWaker waker;
    std::atomic<int> said{0};
    std::atomic<int> heard{0};
    constexpr int kCalls = 20'000;
    std::thread sleeper{[&] {
        for (int next = 1; next <= kCalls; ++next) {
            while (said < next) {
                waker.sleep_until(kNever, [&] { return said >= next; });
            }
            heard = next;
        }
    }};
    std::minstd_rand random{1};
    for (int next = 1; next <= kCalls; ++next) {
        for (auto spin = random() % 300; spin != 0; --spin) {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        said = next;
        waker.wake();
        while (next % 2 == 0 && heard < next) {
            std::this_thread::yield();
        }
    }
    sleeper.join();
    CHECK(heard == kCalls);
}

TEST_CASE(
    "a consumer of another process is woken by what is committed, and by nothing else to do") {
    const SharedMemory memory = SharedMemory::create(Ring::shared_bytes(Ring::kMinBytes));
    constexpr std::uint32_t kEvents = 2000;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        Ring ring{memory.bytes()};
        std::uint32_t next = 1;
        while (next <= kEvents) {
            if (ring.consume(
                    [&](const Event& event) { next += event.session == next ? 1U : 0U; }) == 0) {
                ring.sleep_until(kNever, [] { return false; });
            }
        }
        ::_exit(42);
    }
    Ring ring{memory.bytes()};
    for (std::uint32_t next = 1; next <= kEvents; ++next) {
        Event event;
        event.session = next;
        REQUIRE(ring.try_push(event));
        ring.commit();
        while (next % 3 == 0 && ring.bytes_used() != 0) {
            std::this_thread::yield();
        }
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("wake lets a consumer look at what is no event") {
    Ring ring{Ring::kMinBytes};
    std::atomic<bool> ending{false};
    std::thread consumer{[&] {
        while (!ending) {
            ring.sleep_until(kNever, [&] { return ending.load(); });
        }
    }};
    ending = true;
    ring.wake_consumer();
    consumer.join();
    CHECK(ring.bytes_used() == 0);
}

} // namespace
