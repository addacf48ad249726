#include "proxy/capture/capture_sessions.h"
#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/wire/packet.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"
#include "tests/support/time.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::capture;
using boost::asio::ip::make_address;
using Side = ServerDetector::Side;
using TrafficSelection = ServerDetector::TrafficSelection;

namespace {

using test::kSecond;

using Bytes = std::vector<std::byte>;

CaptureEndpoint endpoint_at(const std::string& address, std::uint16_t port) {
    return {.address = make_address(address), .port = port};
}

const CaptureEndpoint kAnn = endpoint_at("198.51.100.1", 50000);
const CaptureEndpoint kBob = endpoint_at("198.51.100.2", 50000);
const CaptureEndpoint kServer = endpoint_at("192.0.2.1", 8303);

/// Returns a packet with chunks of a 0.7 connection.
Bytes seven_chunks_packet(std::string_view name, bool system) {
    test::MessageBuilder message = test::message(name, wire::Dialect::seven);
    for (int i = 0; i < (system ? 13 : 1); ++i) {
        message.number(i == 2 ? 40 : 1);
    }
    Bytes chunks;
    wire::append_chunk(chunks, false, 0, false, message.bytes(), wire::Dialect::seven);
    return wire::encode_packet({.ack = 5,
                                .num_chunks = 1,
                                .chunks = chunks,
                                .header_token = wire::Token{9, 8, 7, 6},
                                .dialect = wire::Dialect::seven});
}

Bytes connect_packet() {
    return wire::encode_control({.kind = wire::ControlKind::connect, .token = wire::kTokenUnknown});
}

Bytes accept_packet() {
    return wire::encode_control(
        {.kind = wire::ControlKind::connectaccept, .token = wire::kTokenUnknown});
}

Bytes connless_packet(std::string_view text) {
    return wire::encode_connless(
        test::MessageBuilder{}.text("\xff\xff\xff\xff").text(text).bytes());
}

const Bytes kNonsense(20, std::byte{0xaa});

/// Lists when sessions open and close: "2 open 198.51.100.1:50000 192.0.2.1:8303".
class SessionLog final : public test::TypedRecordSink<SessionLog> {
  public:
    void on(const record::MapRecord& /*map*/) { ++maps; }

    void on(const record::SessionRecord& session) {
        const std::string number = std::to_string(session.head.session);
        if (session.event == record::SessionEvent::open) {
            ++open;
            lines.push_back(number + " open " + std::string{session.client} + ' ' +
                            std::string{session.server});
        } else if (session.event == record::SessionEvent::close) {
            --open;
            lines.push_back(number + " close " + std::string{session.reason});
        }
    }

    std::vector<std::string> lines;
    int open = 0;           ///< number of open sessions
    std::uint64_t maps = 0; ///< number of map records
};

/// Turns captured datagrams into sessions.
struct SessionFinder {
    explicit SessionFinder(CaptureSessions::Limits limits = {},
                           const std::string& pseudonym_key = {})
        : inspected{inspector, pseudonym_key}, sessions{inspected, guess, limits} {}

    void pass_datagram(std::int64_t time, const CaptureEndpoint& source,
                       const CaptureEndpoint& destination,
                       const Bytes& payload = connect_packet()) {
        sessions.on_datagram(
            {.time = time, .source = source, .destination = destination, .payload = payload});
    }

    [[nodiscard]] std::vector<std::string> lines() const { return log.lines; }

    [[nodiscard]] std::uint64_t datagrams(std::size_t direction) const {
        return inspector.totals().directions[direction].datagrams;
    }

    test::FakeMaps maps;
    SessionLog log;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.emits_message_records = false}, maps, log, numbers};
    InspectorSessionReceiver inspected;
    ServerDetector guess;
    CaptureSessions sessions;
};

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("the server is recognised by its traffic, then by its port") {
    struct Row {
        std::string_view name;
        CaptureEndpoint source;
        CaptureEndpoint destination;
        Bytes payload;
        Side server;
    };

    const CaptureEndpoint high = endpoint_at("192.0.2.1", 60000);
    const CaptureEndpoint low = endpoint_at("192.0.2.2", 40000);
    const Row rows[] = {
        {"a connect goes to it, whatever its port", low, high, connect_packet(), Side::destination},
        {"an accepted connect comes from it", high, low, accept_packet(), Side::source},
        {"a request for information", low, high, connless_packet("gie3\1"), Side::destination},
        {"information", high, low, connless_packet("inf3"), Side::source},
        {"a game's port", endpoint_at("192.0.2.9", 1024), kServer, kNonsense, Side::destination},
        {"a game's port as source", kServer, endpoint_at("192.0.2.9", 1024), kNonsense,
         Side::source},
        {"the smaller port", high, low, kNonsense, Side::destination},
        {"the smaller port as source", low, high, kNonsense, Side::source},
        {"the same port: who is heard first", endpoint_at("192.0.2.8", 9),
         endpoint_at("192.0.2.9", 9), kNonsense, Side::source},
        {"nothing in it", low, high, {}, Side::source},
        {"what a client of 0.7 sends", high, low, seven_chunks_packet("input", true),
         Side::destination},
        {"what a server of 0.7 sends", low, high, seven_chunks_packet("sv_weapon_pickup", false),
         Side::source},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        ServerDetector guess;
        CHECK(guess.find_server_side({.time = 0,
                                      .source = row.source,
                                      .destination = row.destination,
                                      .payload = row.payload}) == row.server);
    }
}

TEST_CASE("traffic of other programs opens no session, even on the ports of game servers") {
    struct Row {
        std::string_view name;
        CaptureEndpoint destination;
        Bytes payload;
        Side everything, game_ports, recognised;
    };

    const CaptureEndpoint low = endpoint_at("192.0.2.2", 53);
    const Row rows[] = {
        {"nonsense", low, kNonsense, Side::destination, Side::neither, Side::neither},
        {"nonsense to a game's port", kServer, kNonsense, Side::destination, Side::destination,
         Side::neither},
        {"nothing", low, {}, Side::destination, Side::neither, Side::neither},
        {"a connect", low, connect_packet(), Side::destination, Side::destination,
         Side::destination},
        {"a request for information", low, connless_packet("gie3\1"), Side::destination,
         Side::destination, Side::destination},
        {"the middle of a game", low, seven_chunks_packet("input", true), Side::destination,
         Side::destination, Side::destination},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto side_of = [&row](TrafficSelection taken) {
            ServerDetector guess;
            guess.select_traffic(taken);
            return guess.find_server_side(
                {.source = kAnn, .destination = row.destination, .payload = row.payload});
        };
        CHECK(side_of(TrafficSelection::everything) == row.everything);
        CHECK(side_of(TrafficSelection::game_ports) == row.game_ports);
        CHECK(side_of(TrafficSelection::recognised) == row.recognised);
    }
}

TEST_CASE("a recognised server stays one") {
    ServerDetector guess;
    const CaptureEndpoint high = endpoint_at("192.0.2.1", 60000);
    const Bytes asked = connect_packet();
    CHECK(guess.find_server_side({.source = kAnn, .destination = high, .payload = asked}) ==
          Side::destination);
    CHECK(guess.find_server_side({.source = high, .destination = kBob, .payload = kNonsense}) ==
          Side::source);
    CHECK(guess.find_server_side({.source = kBob, .destination = high, .payload = kNonsense}) ==
          Side::destination);
}

TEST_CASE("if a server is given, only its traffic counts") {
    struct Row {
        std::uint16_t port;
        std::optional<std::string> address;
        Side to;
        Side from;
    };

    const Row rows[] = {
        {8303, std::nullopt, Side::destination, Side::source},
        {8303, "192.0.2.1", Side::destination, Side::source},
        {8303, "192.0.2.2", Side::neither, Side::neither},
        {8304, std::nullopt, Side::neither, Side::neither},
        {8304, "192.0.2.1", Side::neither, Side::neither},
        {50000, std::nullopt, Side::source, Side::destination},
    };
    for (const Row& row : rows) {
        CAPTURE(row.port);
        ServerDetector guess;
        guess.add_server(row.port,
                         row.address ? std::optional{make_address(*row.address)} : std::nullopt);
        CHECK(guess.find_server_side(
                  {.source = kAnn, .destination = kServer, .payload = kNonsense}) == row.to);
        CHECK(guess.find_server_side(
                  {.source = kServer, .destination = kAnn, .payload = kNonsense}) == row.from);
    }
}

TEST_CASE("a session opens with its first datagram and has both directions") {
    SessionFinder bench;
    bench.pass_datagram(1 * kSecond, kAnn, kServer);
    bench.pass_datagram(2 * kSecond, kServer, kAnn, accept_packet());
    bench.pass_datagram(3 * kSecond, kBob, kServer);
    bench.pass_datagram(4 * kSecond, kServer, kAnn, kNonsense);
    CHECK(bench.sessions.current_time() == 4 * kSecond);
    bench.inspector.close_all_sessions(bench.sessions.current_time(), "end of capture");
    CHECK(bench.lines() == Lines{"1 open 198.51.100.1:50000 192.0.2.1:8303",
                                 "2 open 198.51.100.2:50000 192.0.2.1:8303",
                                 "1 close end of capture", "2 close end of capture"});
    CHECK(bench.datagrams(0) == 2);
    CHECK(bench.datagrams(1) == 2);
    CHECK(bench.sessions.ignored_datagrams() == 0);
    CHECK(bench.sessions.refused_datagrams() == 0);
}

TEST_CASE("IPv6 endpoints are shown in brackets") {
    SessionFinder bench;
    bench.pass_datagram(0, endpoint_at("2001:db8::7", 50000), endpoint_at("::1", 8303));
    CHECK(bench.lines() == Lines{"1 open [2001:db8::7]:50000 [::1]:8303"});
}

TEST_CASE("a session closes when idle by the capture's time, and its client may return") {
    SessionFinder bench{{.idle_timeout = 10 * kSecond}};
    bench.pass_datagram(0, kAnn, kServer);
    bench.pass_datagram(1 * kSecond, kBob, kServer);
    bench.pass_datagram(11 * kSecond, kServer, kAnn,
                        kNonsense); // Ann's session has timed out, Bob's has not
    CHECK(bench.lines().size() == 4);
    bench.pass_datagram(22 * kSecond, kServer, kBob, kNonsense);
    CHECK(bench.lines() == Lines{"1 open 198.51.100.1:50000 192.0.2.1:8303",
                                 "2 open 198.51.100.2:50000 192.0.2.1:8303", "1 close idle",
                                 "3 open 198.51.100.1:50000 192.0.2.1:8303", "2 close idle",
                                 "3 close idle", "4 open 198.51.100.2:50000 192.0.2.1:8303"});
}

TEST_CASE("a session closes when it is idle after the clock was set back, too") {
    constexpr std::int64_t kHour = 3600 * kSecond;
    SessionFinder bench{{.idle_timeout = 10 * kSecond}};
    bench.pass_datagram(kHour, kAnn, kServer);
    bench.pass_datagram(kSecond, kBob, kServer);
    bench.pass_datagram(2 * kSecond, kServer, kBob, kNonsense);
    bench.pass_datagram(9 * kSecond, kServer, kBob, kNonsense);
    CHECK(bench.lines().size() == 2);
    bench.pass_datagram(13 * kSecond, kServer, kBob, kNonsense);
    CHECK(bench.lines().back() == "1 close idle");
}

TEST_CASE("sessions beyond the limit are refused and counted, and open sessions continue") {
    SessionFinder bench{{.idle_timeout = 10 * kSecond, .max_sessions = 1}};
    bench.pass_datagram(0, kAnn, kServer);
    bench.pass_datagram(1, kBob, kServer);
    bench.pass_datagram(2, kServer, kBob, accept_packet());
    bench.pass_datagram(3, kServer, kAnn, accept_packet());
    CHECK(bench.sessions.refused_datagrams() == 2);
    CHECK(bench.datagrams(1) == 1);
    bench.pass_datagram(20 * kSecond, kBob, kServer);
    CHECK(bench.sessions.refused_datagrams() == 2);
    CHECK(bench.lines().back() == "2 open 198.51.100.2:50000 192.0.2.1:8303");
}

TEST_CASE("a connection replaces a session without a connection, or one without an answer") {
    struct Row {
        std::string_view name;
        Bytes first;
        bool answered;
        std::int64_t after;
        Bytes second;
        bool taken;
    };

    const Bytes asks = connless_packet("gie3\1");
    const Row rows[] = {
        {"a connection, of who asked", asks, true, 1, connect_packet(), true},
        {"who asks, of nobody", asks, false, 2 * kSecond, asks, false},
        {"not at once of who waits for an answer", connect_packet(), false, kSecond - 1,
         connect_packet(), false},
        {"later of who was not answered", connect_packet(), false, kSecond, connect_packet(), true},
        {"never of who was", connect_packet(), true, 5 * kSecond, connect_packet(), false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionFinder bench{{.idle_timeout = 10 * kSecond, .max_sessions = 1}};
        bench.pass_datagram(0, kAnn, kServer, row.first);
        if (row.answered) {
            bench.pass_datagram(0, kServer, kAnn,
                                row.first == asks ? connless_packet("inf3") : accept_packet());
        }
        bench.pass_datagram(row.after, kBob, kServer, row.second);
        CHECK(bench.sessions.refused_datagrams() == (row.taken ? 0 : 1));
        CHECK(bench.lines() ==
              (row.taken ? Lines{"1 open 198.51.100.1:50000 192.0.2.1:8303", "1 close displaced",
                                 "2 open 198.51.100.2:50000 192.0.2.1:8303"}
                         : Lines{"1 open 198.51.100.1:50000 192.0.2.1:8303"}));
    }
}

TEST_CASE("the session silent for the longest time among those without a connection is replaced") {
    SessionFinder bench{{.max_sessions = 2}};
    const Bytes asks = connless_packet("gie3\1");
    bench.pass_datagram(0, kAnn, kServer, asks);
    bench.pass_datagram(1, kBob, kServer, asks);
    bench.pass_datagram(2, kAnn, kServer, asks);
    bench.pass_datagram(3, endpoint_at("198.51.100.3", 50000), kServer);
    CHECK(bench.lines()[2] == "2 close displaced");
}

TEST_CASE("a client that imitates a server is recognised by messages that only clients send") {
    struct Row {
        std::string_view name;
        Bytes lie;
        bool to_others; ///< the client also sends to servers that the tap does not know
    };

    const Row rows[] = {
        {"information", connless_packet("inf3"), true},
        {"an accepted connect", accept_packet(), true},
        {"an accepted connect, to the server alone", accept_packet(), false},
        {"what a server of 0.7 sends", seven_chunks_packet("sv_weapon_pickup", false), true},
    };
    for (const Row& row : rows) {
        for (const TrafficSelection taken :
             {TrafficSelection::everything, TrafficSelection::game_ports,
              TrafficSelection::recognised}) {
            for (const bool known : {false, true}) {
                CAPTURE(row.name);
                CAPTURE(static_cast<int>(taken));
                CAPTURE(known);
                SessionFinder bench;
                bench.guess.select_traffic(taken);
                if (known) {
                    bench.pass_datagram(0, kBob, kServer);
                }
                if (row.to_others) {
                    bench.pass_datagram(1, kAnn, endpoint_at("203.0.113.1", 9999), row.lie);
                }
                bench.pass_datagram(2, kAnn, kServer, row.lie);
                bench.pass_datagram(3, kAnn, kServer);
                bench.pass_datagram(4, kServer, kAnn, accept_packet());
                bench.pass_datagram(5, kAnn, kServer, row.lie);
                CHECK(bench.lines().back().ends_with(" open 198.51.100.1:50000 192.0.2.1:8303"));
                CHECK(bench.log.open == (known ? 2 : 1) + (row.to_others ? 1 : 0));
            }
        }
    }
}

TEST_CASE("traffic of other servers is ignored and counted") {
    SessionFinder bench;
    bench.guess.add_server(8303, std::nullopt);
    bench.pass_datagram(0, kAnn, endpoint_at("192.0.2.1", 8304));
    bench.pass_datagram(1, endpoint_at("192.0.2.1", 8304), kAnn, accept_packet());
    bench.pass_datagram(2, kAnn, kServer);
    CHECK(bench.sessions.ignored_datagrams() == 2);
    CHECK(bench.lines().size() == 1);
    CHECK(bench.datagrams(0) == 1);
}

TEST_CASE("a cut datagram is a gap of its session, and opens no session") {
    SessionFinder bench{{.idle_timeout = 10 * kSecond}};
    const auto see_cut = [&](std::int64_t time, const CaptureEndpoint& from,
                             const CaptureEndpoint& to) {
        bench.sessions.on_datagram(
            {.time = time, .source = from, .destination = to, .payload = {}, .is_truncated = true});
    };
    see_cut(0, kAnn, kServer);
    bench.pass_datagram(1 * kSecond, kBob, kServer);
    CHECK(bench.sessions.truncated_datagrams() == 0);
    see_cut(9 * kSecond, kServer, kBob);
    see_cut(18 * kSecond, kBob, kServer); // a session with traffic is not idle
    CHECK(bench.lines() == Lines{"1 open 198.51.100.2:50000 192.0.2.1:8303"});
    CHECK(bench.sessions.truncated_datagrams() == 2);
    CHECK(bench.inspector.totals().gap_lost == 2);
    CHECK(bench.datagrams(0) == 1);
    CHECK(bench.datagrams(1) == 0);
}

TEST_CASE("with a pseudonym key, clients have pseudonyms and servers do not") {
    SessionFinder bench{{}, "secret"};
    bench.pass_datagram(0, kAnn, kServer);
    REQUIRE(bench.lines().size() == 1);
    CHECK(bench.lines()[0].find("198.51.100.1") == std::string::npos);
    CHECK(bench.lines()[0].find(" 192.0.2.1:8303") != std::string::npos);
}

TEST_CASE("a clock that goes back or jumps ahead leaves each session one open and one close") {
    constexpr std::int64_t kLast = 9'000'000'000 * kSecond;
    SessionFinder bench;
    constexpr std::int64_t kTime = 100 * kSecond;
    for (const std::int64_t next :
         {kTime, std::int64_t{0}, kTime - 1, kTime, kLast, std::int64_t{0}}) {
        bench.pass_datagram(next, kAnn, kServer, kNonsense);
    }
    bench.inspector.close_all_sessions(bench.sessions.current_time(), "end of capture");
    std::size_t open = 0;
    std::size_t closed = 0;
    for (const std::string& line : bench.lines()) {
        open += line.find(" open ") != std::string::npos ? 1U : 0U;
        closed += line.find(" close ") != std::string::npos ? 1U : 0U;
    }
    CHECK(open == closed);
    CHECK(open == 2);
    CHECK(bench.datagrams(0) == 6);
}

TEST_CASE("a state before a packet tells the server and the protocol") {
    const Bytes state = inspect::encode_checkpoint(
        {.map = inspect::MapAnnouncement{.name = "dm1"}, .token_form = inspect::TokenForm::none});

    struct Row {
        const char* name;
        StoredSessionState state;
        Lines lines;
        std::uint64_t map_records;
    };

    const CaptureEndpoint odd = endpoint_at("192.0.2.1", 60000);
    const Row rows[] = {
        {"of its session", {kAnn, odd, state}, {"1 open 198.51.100.1:50000 192.0.2.1:60000"}, 1},
        {"the other way", {odd, kAnn, state}, {"1 open 192.0.2.1:60000 198.51.100.1:50000"}, 1},
        {"of another session",
         {kBob, odd, state},
         {"1 open 192.0.2.1:60000 198.51.100.1:50000"},
         0},
        {"of nonsense", {kAnn, odd, kNonsense}, {"1 open 198.51.100.1:50000 192.0.2.1:60000"}, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionFinder bench;
        bench.sessions.on_datagram({.time = kSecond,
                                    .source = odd,
                                    .destination = kAnn,
                                    .payload = kNonsense,
                                    .state = &row.state});
        CHECK(bench.lines() == row.lines);
        CHECK(bench.log.maps == row.map_records);
    }
}
