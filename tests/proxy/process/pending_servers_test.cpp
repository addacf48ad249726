// Covers: proxy/process/server_names.cpp
#include "proxy/process/server_names.h"
#include "tests/support/program.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using tw::process::ConfiguredServer;
using tw::process::PendingServers;
using tw::test::within;

namespace {

using Endpoints = tw::process::ServerAddresses;

ConfiguredServer named(const std::string& name, const std::string& host) {
    return {.name = name, .where = {.host = host, .port = 8303}};
}

/// A resolver that knows one name, fails for another, and blocks until answer() is called.
struct SlowResolver {
    std::mutex mutex;
    std::condition_variable changed;
    bool answers = false;
    int asked = 0;

    [[nodiscard]] static PendingServers::LookupFactory
    of(const std::shared_ptr<SlowResolver>& self) {
        return [self](const tw::relay::ServerOptions& where) {
            return [self, where]() -> Endpoints {
                std::unique_lock lock{self->mutex};
                ++self->asked;
                self->changed.wait(lock, [&] { return self->answers; });
                if (where.host == "fails.test") {
                    throw std::runtime_error{"no such name"};
                }
                return where.host == "known.test"
                           ? Endpoints{{boost::asio::ip::make_address("192.0.2.7"), where.port}}
                           : Endpoints{};
            };
        };
    }

    void answer() {
        const std::scoped_lock lock{mutex};
        answers = true;
        changed.notify_all();
    }

    [[nodiscard]] bool was_asked(int times) {
        const std::scoped_lock lock{mutex};
        return asked == times;
    }
};

} // namespace

TEST_CASE("servers are added once their names are resolved, without blocking") {
    const auto resolver = std::make_shared<SlowResolver>();
    PendingServers pending{SlowResolver::of(resolver)};
    const std::vector<ConfiguredServer> wanted{named("a", "known.test"), named("b", "fails.test"),
                                               named("c", "unknown.test")};
    for (int again = 0; again < 2; ++again) { // repeated calls start one lookup
        for (const ConfiguredServer& each : wanted) {
            pending.add(each);
        }
    }
    CHECK(within(10s, [&] { return resolver->was_asked(3); }));
    CHECK(pending.take_resolved().empty());

    resolver->answer();
    std::vector<PendingServers::Resolved> arrived;
    CHECK(within(10s, [&] {
        for (auto& each : pending.take_resolved()) {
            arrived.push_back(std::move(each));
        }
        return arrived.size() == wanted.size();
    }));
    for (const PendingServers::Resolved& each : arrived) {
        CAPTURE(each.server.name);
        REQUIRE(each.addresses.empty() == (each.server.name != "a"));
        if (!each.addresses.empty()) {
            CHECK(each.addresses.front().address().to_string() == "192.0.2.7");
            CHECK(each.addresses.front().port() == 8303);
        }
    }
    CHECK(pending.take_resolved().empty());
    CHECK(resolver->was_asked(3));
}

TEST_CASE("a server that was removed while its name was resolved is not added") {
    const auto resolver = std::make_shared<SlowResolver>();
    PendingServers pending{SlowResolver::of(resolver)};
    const ConfiguredServer stays = named("a", "known.test");
    pending.add(stays);
    pending.add(named("b", "known.test"));
    CHECK(within(10s, [&] { return resolver->was_asked(2); }));
    pending.keep_only({stays});
    resolver->answer();
    std::vector<PendingServers::Resolved> arrived;
    CHECK(within(10s, [&] {
        arrived = pending.take_resolved();
        return !arrived.empty();
    }));
    REQUIRE(arrived.size() == 1);
    CHECK(arrived.front().server == stays);
    CHECK(pending.take_resolved().empty());
}
