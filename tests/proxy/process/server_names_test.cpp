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
using tw::process::ServerNameResolver;
using tw::test::within;

namespace {

using Endpoints = std::vector<ServerNameResolver::Endpoint>;

ServerNameResolver::Endpoint at(const char* address) {
    return {boost::asio::ip::make_address(address), 8303};
}

/// A resolver whose result and delay the test sets.
struct Resolver {
    std::mutex mutex;
    std::condition_variable changed;
    Endpoints answer;
    bool fails = false;
    bool held = false;
    int asked = 0;

    [[nodiscard]] static tw::process::NameLookup lookup(const std::shared_ptr<Resolver>& self) {
        return [self] {
            std::unique_lock lock{self->mutex};
            ++self->asked;
            self->changed.wait(lock, [&] { return !self->held; });
            if (self->fails) {
                throw std::runtime_error{"no such name"};
            }
            return self->answer;
        };
    }

    int times_asked() {
        const std::scoped_lock lock{mutex};
        return asked;
    }

    void say(Endpoints endpoints, bool fail = false) {
        const std::scoped_lock lock{mutex};
        answer = std::move(endpoints);
        fails = fail;
        held = false;
        changed.notify_all();
    }

    void hold() {
        const std::scoped_lock lock{mutex};
        held = true;
    }
};

struct Watched {
    std::shared_ptr<Resolver> resolver = std::make_shared<Resolver>();
    ServerNameResolver::Time now{};
    ServerNameResolver name{resolver->lookup(resolver), at("192.0.2.1"), now};

    /// Returns the result of the next lookup.
    std::optional<ServerNameResolver::Endpoint> look(bool silent = false) {
        now += silent ? ServerNameResolver::kSilentLookupInterval
                      : ServerNameResolver::kLookupInterval;
        const int before = resolver->times_asked();
        CHECK_FALSE(name.on_second(now, silent));
        CHECK(within(10s, [&] { return resolver->times_asked() > before; }));
        std::optional<ServerNameResolver::Endpoint> moved;
        // The lookup ends a moment later; the test's time does not advance until then.
        static_cast<void>(within(1s, [&] {
            moved = name.on_second(now, silent);
            return moved.has_value();
        }));
        return moved;
    }
};

} // namespace

TEST_CASE("a name is looked up at intervals, which are shorter while the server is silent") {
    Watched watched;
    watched.resolver->say({at("192.0.2.1")});
    for (auto time = 0s; time < ServerNameResolver::kLookupInterval; time += 1s) {
        CHECK_FALSE(watched.name.on_second(ServerNameResolver::Time{time}, false));
    }
    CHECK(watched.resolver->times_asked() == 0);
    CHECK_FALSE(watched.name.on_second(ServerNameResolver::Time{7s}, true));
    CHECK(within(10s, [&] { return watched.resolver->times_asked() == 1; }));
}

TEST_CASE("a server has moved if its name no longer has the current address") {
    struct Row {
        const char* name;
        Endpoints answer;
        bool fails;
        std::optional<ServerNameResolver::Endpoint> moved;
    };

    const Row rows[] = {
        {"where it was", {at("192.0.2.1")}, false, std::nullopt},
        {"there, too", {at("192.0.2.9"), at("192.0.2.1")}, false, std::nullopt},
        {"nowhere", {}, false, std::nullopt},
        {"a resolver that fails", {at("192.0.2.9")}, true, std::nullopt},
        {"elsewhere", {at("192.0.2.9"), at("192.0.2.8")}, false, at("192.0.2.9")},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Watched watched;
        watched.resolver->say(row.answer, row.fails);
        CHECK(watched.look() == row.moved);
    }
    Watched watched;
    watched.resolver->say({at("192.0.2.9")});
    CHECK(watched.look() == at("192.0.2.9"));
    CHECK(watched.look() == at("192.0.2.9")); // the move was not confirmed
    watched.name.set_current_address(at("192.0.2.9"));
    CHECK_FALSE(watched.look());
    watched.resolver->say({at("192.0.2.1")});
    CHECK(watched.look(true) == at("192.0.2.1"));
}

TEST_CASE("a slow resolver delays neither the run nor its end") {
    auto resolver = std::make_shared<Resolver>();
    resolver->hold();
    {
        ServerNameResolver name{resolver->lookup(resolver), at("192.0.2.1"),
                                ServerNameResolver::Time{}};
        for (auto time = 0s; time < 10 * ServerNameResolver::kLookupInterval; time += 1s) {
            CHECK_FALSE(name.on_second(ServerNameResolver::Time{time}, true));
        }
        CHECK(within(10s, [&] { return resolver->times_asked() == 1; }));
    }
    resolver->say({at("192.0.2.9")}); // the ServerNameResolver is gone already
}

namespace {

using tw::process::ConfiguredServer;
using tw::process::UnresolvedServers;

ConfiguredServer named(const std::string& name, const std::string& host) {
    return {.name = name, .where = {.host = host, .port = 8303}};
}

/// Servers whose names a resolver knows only if they begin with "known". It blocks until released.
struct Pending {
    Pending() { resolver->hold(); }

    std::shared_ptr<Resolver> resolver = std::make_shared<Resolver>();
    UnresolvedServers servers{[resolver = resolver](const tw::relay::ServerOptions& where) {
        return [lookup = Resolver::lookup(resolver), host = where.host]() -> Endpoints {
            const Endpoints all = lookup();
            return host.starts_with("known")  ? all
                   : host.starts_with("none") ? Endpoints{}
                                              : throw std::runtime_error{"no such name"};
        };
    }};
};

} // namespace

TEST_CASE("servers are added once their names are resolved, without blocking") {
    Pending pending;
    const std::vector<ConfiguredServer> wanted{named("a", "known.test"), named("b", "fails.test"),
                                               named("c", "none.test")};
    for (int again = 0; again < 2; ++again) { // repeated calls start one lookup
        for (const ConfiguredServer& each : wanted) {
            pending.servers.add_server(each);
        }
    }
    CHECK(within(10s, [&] { return pending.resolver->times_asked() == 3; }));
    CHECK(pending.servers.take_resolved_servers().empty());

    pending.resolver->say({at("192.0.2.7")});
    std::vector<UnresolvedServers::ResolvedServer> arrived;
    CHECK(within(10s, [&] {
        for (auto& each : pending.servers.take_resolved_servers()) {
            arrived.push_back(std::move(each));
        }
        return arrived.size() == wanted.size();
    }));
    for (const UnresolvedServers::ResolvedServer& each : arrived) {
        CAPTURE(each.server.name);
        REQUIRE(each.addresses.empty() == (each.server.name != "a"));
        if (!each.addresses.empty()) {
            CHECK(each.addresses.front().address().to_string() == "192.0.2.7");
            CHECK(each.addresses.front().port() == 8303);
        }
    }
    CHECK(pending.servers.take_resolved_servers().empty());
    CHECK(pending.resolver->times_asked() == 3);
}

TEST_CASE("a server that was removed while its name was resolved is not added") {
    Pending pending;
    const ConfiguredServer stays = named("a", "known.test");
    pending.servers.add_server(stays);
    pending.servers.add_server(named("b", "known.test"));
    CHECK(within(10s, [&] { return pending.resolver->times_asked() == 2; }));
    pending.servers.remove_unwanted_servers({stays});
    pending.resolver->say({at("192.0.2.7")});
    std::vector<UnresolvedServers::ResolvedServer> arrived;
    CHECK(within(10s, [&] {
        arrived = pending.servers.take_resolved_servers();
        return !arrived.empty();
    }));
    REQUIRE(arrived.size() == 1);
    CHECK(arrived.front().server == stays);
    CHECK(pending.servers.take_resolved_servers().empty());
}
