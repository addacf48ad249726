#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/settings.h"

#include <cstdlib>

#include <doctest/doctest.h>

namespace {

using namespace tw;
using namespace tw::cli;
using boost::asio::ip::make_address;
using relay::ClientAddressMode;
using test::contains;
using Udp = boost::asio::ip::udp;

using Arguments = std::vector<std::string>;

struct ParsedProxyFlags {
    explicit ParsedProxyFlags(const Arguments& arguments) {
        Command command{"proxy"};
        flags.add_to(command);
        command.parse_arguments(arguments);
    }

    ProxyFlags flags;
};

/// Returns the relay's options for these arguments.
relay::Options relay_options_of(Arguments arguments) {
    arguments.insert(arguments.end(), {"-s", "127.0.0.1:1"});
    return ParsedProxyFlags{arguments}.flags.relay_options();
}

TEST_CASE("flags about the relay become its options") {
    CHECK(relay_options_of({}).client_address == ClientAddressMode::automatic);
    CHECK_FALSE(relay_options_of({}).impairment.is_active());
    CHECK(relay_options_of({}).impairment.seed == 1);
    CHECK(relay_options_of({"--client-address", "shared"}).client_address ==
          ClientAddressMode::shared);
    CHECK(relay_options_of({"--client-address", "loopback"}).client_address ==
          ClientAddressMode::loopback);
    CHECK(relay_options_of({"--client-address", "transparent"}).client_address ==
          ClientAddressMode::transparent);
    CHECK_THROWS_AS(relay_options_of({"--client-address", "own"}), UsageError);

    const auto twice = relay_options_of(
        {"--impair", "c2s:loss=1%", "--impair", "s2c:delay=40ms,jitter=1ms", "--impair-seed", "9"});
    CHECK(relay::to_string(twice.impairment) == "c2s:loss=1%;s2c:delay=40ms,jitter=1ms");
    CHECK(twice.impairment.seed == 9);
    CHECK(relay::to_string(relay_options_of({"--impair", "none"}).impairment) == "none");
}

TEST_CASE("the state folder is the given one, or the system's usual one") {
    // NOLINTBEGIN(concurrency-mt-unsafe): there is no other thread
    ::unsetenv("STATE_DIRECTORY");
    ::unsetenv("XDG_STATE_HOME");
    ::setenv("HOME", "/home/tee", 1);
    ProxyFlags flags;
    CHECK(flags.state_folder() == "/home/tee/.local/state/twscope");
    ::setenv("XDG_STATE_HOME", "/state", 1);
    CHECK(flags.state_folder() == "/state/twscope");
    ::setenv("STATE_DIRECTORY", "/var/lib/twscope:/var/lib/other", 1);
    // NOLINTEND(concurrency-mt-unsafe)
    CHECK(flags.state_folder() == "/var/lib/twscope");
    flags.state = "here";
    CHECK(flags.state_folder() == "here");
}

TEST_CASE("an invalid impairment is a usage error with the flag's name") {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(relay_options_of({"--impair", "loss=2%", "--impair", "c2s:loss=3%"})),
        "--impair loss=2%;c2s:loss=3%: loss is given twice for c2s", UsageError);
}

TEST_CASE("times are seconds, or have a unit") {
    struct Row {
        std::string_view text;
        double seconds;
    };

    const Row rows[] = {{"30", 30},     {"30s", 30},   {"30 s", 30}, {"0.5", 0.5},
                        {"500ms", 0.5}, {"2min", 120}, {"1h", 3600}};
    for (const auto& row : rows) {
        CAPTURE(row.text);
        const std::string text{row.text};
        const ParsedProxyFlags parsed{{"--idle-timeout", text, "--duration", text}};
        CHECK(parsed.flags.duration == doctest::Approx(row.seconds));
        CHECK(parsed.flags.idle_timeout == doctest::Approx(row.seconds));
    }
    for (const char* text : {"-3", "0", "0s", "3 parsecs", "3,5"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(ParsedProxyFlags({"--duration", text}), UsageError);
    }
}

TEST_CASE("the start-up line says which client addresses the server sees, and why") {
    struct Row {
        ClientAddressMode wanted;
        ClientAddressMode chosen;
        std::string_view says;
        std::string_view why;
    };

    const Row rows[] = {
        {ClientAddressMode::automatic, ClientAddressMode::loopback, "its own 127.x.y.z",
         "the server is on loopback"},
        {ClientAddressMode::automatic, ClientAddressMode::shared, "the proxy's address",
         "--insecure-shared"},
        {ClientAddressMode::shared, ClientAddressMode::shared, "the proxy's address",
         "--client-address"},
        {ClientAddressMode::loopback, ClientAddressMode::loopback, "its own 127.x.y.z",
         "--client-address"},
        {ClientAddressMode::transparent, ClientAddressMode::transparent, "real address",
         "--print-routes"},
    };
    for (const Row& row : rows) {
        const std::string line = describe_client_address_mode(row.wanted, row.chosen);
        CAPTURE(line);
        CHECK(contains(line, row.says));
        CHECK(contains(line, row.why));
        CHECK_FALSE(contains(line, "\n"));
    }
}

TEST_CASE("routes contain the server's port, and its address if the server is on another host") {
    struct Row {
        std::string_view name;
        std::string_view server;
        bool here;
        std::string_view rule;
    };

    const Row rows[] = {
        {"elsewhere", "192.0.2.7", false,
         "\nip rule add pref 8303 from 192.0.2.7 ipproto 17 sport 8304 lookup 8303\n"},
        {"on this host", "127.0.0.1", true,
         "\nip rule add pref 8303 ipproto 17 sport 8304 lookup 8303\n"},
        {"IPv6", "2001:db8::7", false,
         "\nip -6 rule add pref 8303 from 2001:db8::7 ipproto 17 sport 8304 lookup 8303\n"},
    };
    const std::vector<Udp::endpoint> listen{{make_address("0.0.0.0"), 8303}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Udp::endpoint server{make_address(row.server), 8304};
        const std::string text = transparent_routing_script(server, row.here, listen);
        CAPTURE(text);
        CHECK(contains(text, row.rule));
        CHECK(contains(text, "route add local default dev lo table 8303\n"));
        CHECK((!contains(text, "On the server's host")) == row.here);
    }
    const Udp::endpoint same_port{make_address("127.0.0.1"), 8303};
    CHECK_THROWS_AS(static_cast<void>(transparent_routing_script(same_port, true, listen)),
                    UsageError);
    CHECK_NOTHROW(static_cast<void>(transparent_routing_script(same_port, false, listen)));
}

TEST_CASE("a single server needs no name") {
    const ParsedProxyFlags parsed{{"-s", "127.0.0.1:8304", "-l", "127.0.0.1:1", "-l", "[::1]:1"}};
    CHECK(parsed.flags.servers().empty());
    CHECK(parsed.flags.server_name() == "127.0.0.1:8304");
    const relay::Options options = parsed.flags.relay_options();
    CHECK(options.server.host == "127.0.0.1");
    CHECK(options.server.port == 8304);
    CHECK(options.server.listen.size() == 2);
    CHECK(ParsedProxyFlags{{"-s", "game.test:8304"}}.flags.relay_options().server.listen.size() ==
          1);
}

TEST_CASE("each named server has its listen address, in the same order") {
    const ParsedProxyFlags parsed{
        {"-s", "ctf=127.0.0.1:8304", "-s", "race-1=game.test:1", "-l", ":8303", "-l", "[::1]:0"}};
    const auto servers = parsed.flags.servers();
    REQUIRE(servers.size() == 2);
    CHECK(servers[0].name == "ctf");
    CHECK(servers[0].options.host == "127.0.0.1");
    CHECK(servers[0].options.port == 8304);
    REQUIRE(servers[0].options.listen.size() == 1);
    CHECK(servers[0].options.listen[0].port() == 8303);
    CHECK(servers[1].name == "race-1");
    CHECK(servers[1].options.host == "game.test");
    CHECK(servers[1].options.listen[0].address().is_v6());
    CHECK(parsed.flags.relay_options().server.listen.size() == 1);
    CHECK(parsed.flags.server_name() == "fleet");
    CHECK(ParsedProxyFlags{{"-s", "ctf=127.0.0.1:8304"}}.flags.servers().size() == 1);
}

TEST_CASE("servers with the same name or address are rejected with a hint") {
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
        const ParsedProxyFlags parsed{row.arguments};
        CHECK_THROWS_WITH_AS(static_cast<void>(parsed.flags.relay_options()),
                             doctest::Contains(std::string{row.says}.c_str()), UsageError);
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
        CHECK_NOTHROW(static_cast<void>(ParsedProxyFlags{row}.flags.relay_options()));
    }
    const ParsedProxyFlags one{{"-s", "a:1", "-l", "127.0.0.1:1", "-l", ":1"}};
    CHECK_THROWS_WITH_AS(
        static_cast<void>(one.flags.relay_options()),
        "--listen 127.0.0.1:1 and 0.0.0.0:1: the addresses overlap; leave one of them out",
        UsageError);
}

} // namespace
