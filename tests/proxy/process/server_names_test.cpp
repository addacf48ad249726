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
using tw::test::becomes_true_within;

namespace {

using Endpoints = std::vector<ServerNameResolver::Endpoint>;

ServerNameResolver::Endpoint make_server_endpoint(const char* address) {
    return {boost::asio::ip::make_address(address), 8303};
}

/// A resolver whose result and delay the test sets.
struct FakeNameResolver {
    std::mutex mutex;
    std::condition_variable changed;
    Endpoints answer;
    bool fails = false;
    bool is_blocked = false;
    int num_lookups = 0;

    [[nodiscard]] static tw::process::NameLookup
    make_lookup(const std::shared_ptr<FakeNameResolver>& self) {
        return [self] {
            std::unique_lock lock{self->mutex};
            ++self->num_lookups;
            self->changed.wait(lock, [&] { return !self->is_blocked; });
            if (self->fails) {
                throw std::runtime_error{"no such name"};
            }
            return self->answer;
        };
    }

    int count_lookups() {
        const std::scoped_lock lock{mutex};
        return num_lookups;
    }

    void set_answer(Endpoints endpoints, bool fail = false) {
        const std::scoped_lock lock{mutex};
        answer = std::move(endpoints);
        fails = fail;
        is_blocked = false;
        changed.notify_all();
    }

    void block_lookups() {
        const std::scoped_lock lock{mutex};
        is_blocked = true;
    }
};

struct ResolverBench {
    std::shared_ptr<FakeNameResolver> resolver = std::make_shared<FakeNameResolver>();
    ServerNameResolver::Time now{};
    ServerNameResolver name{resolver->make_lookup(resolver), make_server_endpoint("192.0.2.1"),
                            now};

    /// Returns the result of the next lookup.
    std::optional<ServerNameResolver::Endpoint> next_lookup_result(bool silent = false) {
        now += silent ? ServerNameResolver::kSilentLookupInterval
                      : ServerNameResolver::kLookupInterval;
        const int before = resolver->count_lookups();
        CHECK_FALSE(name.on_second(now, silent));
        CHECK(becomes_true_within(10s, [&] { return resolver->count_lookups() > before; }));
        std::optional<ServerNameResolver::Endpoint> moved;
        // The lookup ends a moment later; the test's time does not advance until then.
        static_cast<void>(becomes_true_within(1s, [&] {
            moved = name.on_second(now, silent);
            return moved.has_value();
        }));
        return moved;
    }
};

} // namespace

TEST_CASE("a name is looked up at intervals, which are shorter while the server is silent") {
    ResolverBench bench;
    bench.resolver->set_answer({make_server_endpoint("192.0.2.1")});
    for (auto time = 0s; time < ServerNameResolver::kLookupInterval; time += 1s) {
        CHECK_FALSE(bench.name.on_second(ServerNameResolver::Time{time}, false));
    }
    CHECK(bench.resolver->count_lookups() == 0);
    CHECK_FALSE(bench.name.on_second(ServerNameResolver::Time{7s}, true));
    CHECK(becomes_true_within(10s, [&] { return bench.resolver->count_lookups() == 1; }));
}

TEST_CASE("a server has moved if its name no longer has the current address") {
    struct Row {
        const char* name;
        Endpoints answer;
        bool fails;
        std::optional<ServerNameResolver::Endpoint> moved;
    };

    const Row rows[] = {
        {"where it was", {make_server_endpoint("192.0.2.1")}, false, std::nullopt},
        {"there, too",
         {make_server_endpoint("192.0.2.9"), make_server_endpoint("192.0.2.1")},
         false,
         std::nullopt},
        {"nowhere", {}, false, std::nullopt},
        {"a resolver that fails", {make_server_endpoint("192.0.2.9")}, true, std::nullopt},
        {"elsewhere",
         {make_server_endpoint("192.0.2.9"), make_server_endpoint("192.0.2.8")},
         false,
         make_server_endpoint("192.0.2.9")},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        ResolverBench bench;
        bench.resolver->set_answer(row.answer, row.fails);
        CHECK(bench.next_lookup_result() == row.moved);
    }
    ResolverBench bench;
    bench.resolver->set_answer({make_server_endpoint("192.0.2.9")});
    CHECK(bench.next_lookup_result() == make_server_endpoint("192.0.2.9"));
    // The result is repeated because the move was not confirmed.
    CHECK(bench.next_lookup_result() == make_server_endpoint("192.0.2.9"));
    bench.name.set_current_address(make_server_endpoint("192.0.2.9"));
    CHECK_FALSE(bench.next_lookup_result());
    bench.resolver->set_answer({make_server_endpoint("192.0.2.1")});
    CHECK(bench.next_lookup_result(true) == make_server_endpoint("192.0.2.1"));
}

TEST_CASE("a slow resolver delays neither the run nor its end") {
    auto resolver = std::make_shared<FakeNameResolver>();
    resolver->block_lookups();
    {
        ServerNameResolver name{resolver->make_lookup(resolver), make_server_endpoint("192.0.2.1"),
                                ServerNameResolver::Time{}};
        for (auto time = 0s; time < 10 * ServerNameResolver::kLookupInterval; time += 1s) {
            CHECK_FALSE(name.on_second(ServerNameResolver::Time{time}, true));
        }
        CHECK(becomes_true_within(10s, [&] { return resolver->count_lookups() == 1; }));
    }
    // The ServerNameResolver no longer exists.
    resolver->set_answer({make_server_endpoint("192.0.2.9")});
}

namespace {

using tw::process::ConfiguredServer;
using tw::process::UnresolvedServers;

ConfiguredServer make_named_server(const std::string& name, const std::string& host) {
    return {.name = name, .options = {.host = host, .port = 8303}};
}

/// Servers whose names can be resolved only if they begin with "known". Lookups block at first.
struct UnresolvedServersBench {
    UnresolvedServersBench() { resolver->block_lookups(); }

    std::shared_ptr<FakeNameResolver> resolver = std::make_shared<FakeNameResolver>();
    UnresolvedServers servers{[resolver = resolver](const tw::relay::ServerOptions& where) {
        return
            [lookup = FakeNameResolver::make_lookup(resolver), host = where.host]() -> Endpoints {
                const Endpoints all = lookup();
                return host.starts_with("known")  ? all
                       : host.starts_with("none") ? Endpoints{}
                                                  : throw std::runtime_error{"no such name"};
            };
    }};
};

} // namespace

TEST_CASE("servers are added once their names are resolved, without blocking") {
    UnresolvedServersBench pending;
    const std::vector<ConfiguredServer> wanted{make_named_server("a", "known.test"),
                                               make_named_server("b", "fails.test"),
                                               make_named_server("c", "none.test")};
    for (int again = 0; again < 2; ++again) { // repeated calls start one lookup
        for (const ConfiguredServer& each : wanted) {
            pending.servers.add_server(each);
        }
    }
    CHECK(becomes_true_within(10s, [&] { return pending.resolver->count_lookups() == 3; }));
    CHECK(pending.servers.take_resolved_servers().empty());

    pending.resolver->set_answer({make_server_endpoint("192.0.2.7")});
    std::vector<UnresolvedServers::ResolvedServer> arrived;
    CHECK(becomes_true_within(10s, [&] {
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
    CHECK(pending.resolver->count_lookups() == 3);
}

TEST_CASE("a server that was removed while its name was resolved is not added") {
    UnresolvedServersBench pending;
    const ConfiguredServer stays = make_named_server("a", "known.test");
    pending.servers.add_server(stays);
    pending.servers.add_server(make_named_server("b", "known.test"));
    CHECK(becomes_true_within(10s, [&] { return pending.resolver->count_lookups() == 2; }));
    pending.servers.remove_unwanted_servers({stays});
    pending.resolver->set_answer({make_server_endpoint("192.0.2.7")});
    std::vector<UnresolvedServers::ResolvedServer> arrived;
    CHECK(becomes_true_within(10s, [&] {
        arrived = pending.servers.take_resolved_servers();
        return !arrived.empty();
    }));
    REQUIRE(arrived.size() == 1);
    CHECK(arrived.front().server == stays);
    CHECK(pending.servers.take_resolved_servers().empty());
}
