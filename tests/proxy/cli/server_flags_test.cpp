// Covers: proxy/cli/proxy_flags.cpp
#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/settings.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw;
using namespace tw::cli;

using Arguments = std::vector<std::string>;

struct Parsed {
    explicit Parsed(Arguments arguments) {
        Command command;
        flags.add_to(command);
        command.parse(std::move(arguments));
    }

    ProxyFlags flags;
};

TEST_CASE("a single server needs no name") {
    const Parsed parsed{{"-s", "127.0.0.1:8304", "-l", "127.0.0.1:1", "-l", "[::1]:1"}};
    CHECK(parsed.flags.servers().empty());
    CHECK(parsed.flags.server_name() == "127.0.0.1:8304");
    const relay::Options options = parsed.flags.relay_options();
    CHECK(options.server_host == "127.0.0.1");
    CHECK(options.server_port == 8304);
    CHECK(options.listen.size() == 2);
    CHECK(Parsed{{"-s", "game.test:8304"}}.flags.relay_options().listen.size() == 1);
}

TEST_CASE("each named server has its listen address, in the same order") {
    const Parsed parsed{
        {"-s", "ctf=127.0.0.1:8304", "-s", "race-1=game.test:1", "-l", ":8303", "-l", "[::1]:0"}};
    const auto servers = parsed.flags.servers();
    REQUIRE(servers.size() == 2);
    CHECK(servers[0].name == "ctf");
    CHECK(servers[0].where.host == "127.0.0.1");
    CHECK(servers[0].where.port == 8304);
    REQUIRE(servers[0].where.listen.size() == 1);
    CHECK(servers[0].where.listen[0].port() == 8303);
    CHECK(servers[1].name == "race-1");
    CHECK(servers[1].where.host == "game.test");
    CHECK(servers[1].where.listen[0].address().is_v6());
    CHECK(parsed.flags.relay_options().listen.size() == 1);
    CHECK(parsed.flags.server_name() == "fleet");
    CHECK(Parsed{{"-s", "ctf=127.0.0.1:8304"}}.flags.servers().size() == 1);
}

TEST_CASE("servers that cannot be distinguished are rejected with a hint") {
    struct Row {
        std::string_view name;
        Arguments arguments;
        std::string_view says;
    };

    const Row rows[] = {
        {"no names",
         {"-s", "a:1", "-s", "b:1", "-l", ":1", "-l", ":2"},
         "several servers need names"},
        {"no names, and too few addresses",
         {"-s", "a:1", "-s", "b:1", "-l", ":1"},
         "--server a:1: several servers need names"},
        {"one without",
         {"-s", "a=a:1", "-s", "b:1", "-l", ":1", "-l", ":2"},
         "several servers need names"},
        {"an empty one", {"-s", "=a:1", "-l", ":1"}, "several servers need names"},
        {"no part of a subject", {"-s", "a.b=a:1", "-l", ":1"}, "letters, digits"},
        {"a wildcard", {"-s", "*=a:1", "-l", ":1"}, "letters, digits"},
        {"too long", {"-s", std::string(65, 'a') + "=a:1", "-l", ":1"}, "at most 64"},
        {"twice", {"-s", "a=a:1", "-s", "a=b:1", "-l", ":1", "-l", ":2"}, "give each its own"},
        {"one address", {"-s", "a=a:1", "-s", "b=b:1", "-l", ":1", "-l", ":1"}, "own port"},
        {"all of IPv4",
         {"-s", "a=a:1", "-s", "b=b:1", "-l", ":1", "-l", "127.0.0.1:1"},
         "--listen 0.0.0.0:1 for a and 127.0.0.1:1 for b: "},
        {"the other way",
         {"-s", "a=a:1", "-s", "b=b:1", "-l", "127.0.0.1:1", "-l", ":1"},
         "own port"},
        {"both families",
         {"-s", "a=a:1", "-s", "b=b:1", "-l", "[::]:1", "-l", "127.0.0.1:1"},
         "own port"},
        {"all of both", {"-s", "a=a:1", "-s", "b=b:1", "-l", ":1", "-l", "[::]:1"}, "own port"},
        {"all of IPv6",
         {"-s", "a=a:1", "-s", "b=b:1", "-l", "[::1]:1", "-l", "[::]:1"},
         "own port"},
        {"IPv4 within IPv6",
         {"-s", "a=a:1", "-s", "b=b:1", "-l", "[::ffff:127.0.0.1]:1", "-l", "127.0.0.1:1"},
         "own port"},
        {"the first and the third",
         {"-s", "a=a:1", "-s", "b=b:1", "-s", "c=c:1", "-l", ":1", "-l", ":2", "-l", "127.0.0.1:1"},
         "--listen 0.0.0.0:1 for a and 127.0.0.1:1 for c: "},
        {"one server", {"-s", "a=a:1", "-s", "b=a:1", "-l", ":1", "-l", ":2"}, "one name"},
        {"too few", {"-s", "a=a:1", "-s", "b=b:1", "-l", ":1"}, "give each server its own"},
        {"too many", {"-s", "a=a:1", "-l", ":1", "-l", ":2"}, "give each server its own"},
        {"no port", {"-s", "a=a:0", "-l", ":1"}, "expected HOST:PORT"},
        {"no host", {"-s", "a=:1", "-l", ":1"}, "expected HOST:PORT"},
        {"a name to listen on", {"-s", "a=a:1", "-l", "b:1"}, "not a name"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Parsed parsed{row.arguments};
        std::string said;
        try {
            static_cast<void>(parsed.flags.relay_options());
        } catch (const UsageError& error) {
            said = error.what();
        }
        CAPTURE(said);
        CHECK(said.find(row.says) != std::string::npos);
    }
}

TEST_CASE("addresses that can be bound together are accepted") {
    const std::vector<Arguments> rows = {
        {"-s", "a=a:1", "-s", "b=b:1", "-l", ":1", "-l", ":2"},
        {"-s", "a=a:1", "-s", "b=b:1", "-l", ":0", "-l", "127.0.0.1:0"},
        {"-s", "a=a:1", "-s", "b=b:1", "-l", ":1", "-l", "[::1]:1"},
        {"-s", "a=a:1", "-s", "b=b:1", "-l", "127.0.0.1:1", "-l", "127.0.0.2:1"},
        {"-s", "a:1", "-l", "127.0.0.1:1", "-l",
         "[::]:1"}, // addresses of one server, whose [::] excludes IPv4
        {"-s", "a:1", "-l", ":1", "-l", "[::]:1"},
    };
    for (const Arguments& row : rows) {
        CAPTURE(row.back());
        CHECK_NOTHROW(static_cast<void>(Parsed{row}.flags.relay_options()));
    }
    const Parsed one{{"-s", "a:1", "-l", "127.0.0.1:1", "-l", ":1"}};
    CHECK_THROWS_WITH_AS(
        static_cast<void>(one.flags.relay_options()),
        "--listen 127.0.0.1:1 and 0.0.0.0:1: the addresses overlap; leave one of them out",
        UsageError);
}

} // namespace
