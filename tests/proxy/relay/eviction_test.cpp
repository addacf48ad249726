#include "proxy/relay/session_table.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/local_ring.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <boost/asio/ip/udp.hpp>
#include <doctest/doctest.h>
#include <sys/epoll.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using std::chrono::milliseconds;
using tw::relay::test::ipv4_endpoint;

constexpr std::uint16_t kServerPort = 9; // nothing is ever sent there
constexpr std::uint16_t kListenPort = 8303;

/// A game with datagrams of one letter. From the client: 'c' begins, 'v' verifies at once, 'i' is a
/// request. From the server: 'm' shows play, and 'k' keeps the client's slot.
DatagramVerdict judge_by_letter(RememberedHandshakes& memory, Direction direction,
                                std::span<const std::byte> datagram) {
    const char letter = static_cast<char>(datagram[0]);
    std::byte& verified = memory.bytes[0];
    if (direction == Direction::s2c) {
        const bool plays = letter == 'm';
        return {.standing = !plays                    ? ClientStanding::connless
                            : verified != std::byte{} ? ClientStanding::player
                                                      : ClientStanding::unverified_player,
                .shows_player = plays || letter == 'k'};
    }
    verified |= letter == 'v' ? std::byte{1} : std::byte{0};
    return letter == 'i' ? DatagramVerdict{.request = RequestKind::server_info, .is_answered = true}
           : letter == 'v' ? DatagramVerdict{.standing = ClientStanding::verified}
           : letter == 'c'
               ? DatagramVerdict{.standing = ClientStanding::unverified, .is_answered = true}
               : DatagramVerdict{.standing = ClientStanding::unrecognised};
}

/// Returns an IPv6 endpoint. `networks`: the bytes that select the /48, the /56 and the /64.
Endpoint ipv6_endpoint(std::array<std::uint8_t, 3> networks, std::uint16_t port) {
    Endpoint endpoint{.port = port, .v6 = true};
    endpoint.address = {std::byte{0x20}, std::byte{1}, std::byte{0x0d}, std::byte{0xb8},
                        std::byte{0}};
    for (std::size_t i = 0; i < networks.size(); ++i) {
        endpoint.address[5 + i] = std::byte{networks[i]};
    }
    return endpoint;
}

/// A session table without a relay. The test sets the time.
class SessionTableBench {
  public:
    explicit SessionTableBench(std::size_t max_sessions)
        : options_{make_options(max_sessions)}, shared_{options_, numbers_, 0,
                                                        to_asio_endpoint(
                                                            ipv4_endpoint(0x7f000001, kServerPort)),
                                                        ClientAddressMode::shared},
          table_{shared_, listeners_, epoll_.get(), copier_, observation_.counters[0], timers_} {
        advance_time(milliseconds{10'000});
    }

    /// Sends a datagram of a client. Returns whether the client then has a session.
    bool send_from_client(const Endpoint& client, char letter) {
        timers_.begin_batch(now_);
        SocketAddress name{};
        const auto asio = to_asio_endpoint(client);
        std::memcpy(&name, asio.data(), asio.size());
        msghdr header{};
        header.msg_name = &name;
        header.msg_namelen = static_cast<socklen_t>(asio.size());
        const std::array datagram{static_cast<std::byte>(letter)};
        Session* const session = table_.find_or_open_session(header, datagram, 0);
        if (session != nullptr) {
            session->is_active = true;
            table_.examine_datagram(*session, Direction::c2s, datagram);
        }
        timers_.end_batch();
        copier_.commit_events();
        return session != nullptr;
    }

    /// Sends a datagram of the server to a client that has a session.
    void send_from_server(const Endpoint& client, char letter) {
        timers_.begin_batch(now_);
        if (Session* const session = table_.sessions().find(client, 0)) {
            const std::array datagram{static_cast<std::byte>(letter)};
            table_.note_server_answer(*session);
            table_.examine_datagram(*session, Direction::s2c, datagram);
        }
        timers_.end_batch();
        copier_.commit_events();
    }

    void send_from_server(const std::vector<Endpoint>& clients, char letter) {
        for (const Endpoint& each : clients) {
            send_from_server(each, letter);
        }
    }

    /// Lets `number` players join one after another, while the other players go on playing.
    std::vector<Endpoint> join_players(std::uint32_t first, std::size_t number,
                                       const std::vector<Endpoint>& others = {}) {
        std::vector<Endpoint> players;
        for (std::uint32_t i = 0; i < number; ++i) {
            players.push_back(ipv4_endpoint(first + i, 1000));
            REQUIRE(join_player(players.back()));
            advance_time(milliseconds{300});
            send_from_server(others, 'm');
            send_from_server(players, 'm');
        }
        return players;
    }

    /// Performs the whole handshake of a client that the server accepts.
    bool join_player(const Endpoint& client) {
        const bool begun = send_from_client(client, 'c');
        send_from_client(client, 'v');
        send_from_server(client, 'm');
        return begun && is_player(client);
    }

    [[nodiscard]] bool is_player(const Endpoint& client) {
        const Session* const session = table_.sessions().find(client, 0);
        return session != nullptr && session->standing == ClientStanding::player;
    }

    [[nodiscard]] std::size_t count_sessions(ClientStanding standing) {
        return table_.sessions().sessions_of_standing(standing).size();
    }

    /// Returns how many of these clients have a session.
    [[nodiscard]] std::size_t count_with_session(const std::vector<Endpoint>& clients) {
        std::size_t count = 0;
        for (const Endpoint& each : clients) {
            count += table_.sessions().find(each, 0) != nullptr ? 1U : 0U;
        }
        return count;
    }

    void advance_time(milliseconds time) {
        now_ += time;
        while (!timers_.check_due_sessions(
            now_, [this](Session& each) { table_.check_timeout(each, now_); })) {
        }
        copier_.commit_events();
    }

    [[nodiscard]] const LiveCounters& counters() const { return observation_.counters[0]; }

  private:
    static Options make_options(std::size_t max_sessions) {
        Options options;
        options.max_sessions = max_sessions;
        options.judge_datagram = judge_by_letter;
        return options;
    }

    Options options_;
    LastSessionNumbers numbers_;
    ObserverSharedMemory observation_{.observer{1}};
    SharedServerData shared_;
    Clock::time_point now_ = Clock::now();
    UniqueFd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
    std::vector<Listener> listeners_{
        Listener{.socket = -1, .is_any_address = true, .local = ipv4_endpoint(0, kListenPort)}};
    tw::test::LocalRing ring_{Ring::kMinBytes};
    DatagramCopier copier_{&ring_, observation_.observer};
    SessionTimers timers_{milliseconds{2000}, now_};
    SessionTable table_;
};

constexpr std::uint32_t kAttackerAddress = 0x0a000000;
constexpr std::uint32_t kHonestAddress = 0x14000000;

/// Lets a client of another network join. The client repeats its datagram twice a second and
/// answers after 100 ms. Returns the time until the client plays. `meanwhile`: called every 100 ms.
template <typename Meanwhile>
milliseconds measure_join_time(SessionTableBench& bench, const Endpoint& client,
                               Meanwhile&& meanwhile) {
    constexpr milliseconds kTrip{100};
    constexpr int kTripsPerRepetition = 5;
    milliseconds waited{0};
    bool in = false;
    for (int trip = 0; waited < std::chrono::seconds{20}; ++trip, waited += kTrip) {
        if (in) {
            bench.send_from_client(client, 'v');
            bench.send_from_server(client, 'm');
            if (bench.is_player(client)) {
                break;
            }
        }
        in = (trip % kTripsPerRepetition == 0 && bench.send_from_client(client, 'c')) ||
             bench.count_with_session({client}) == 1;
        meanwhile();
        bench.advance_time(kTrip);
    }
    return waited;
}

TEST_CASE("verified clients without a server slot evict no player") {
    for (const std::size_t max_sessions : {std::size_t{64}, std::size_t{1024}}) {
        CAPTURE(max_sessions);
        SessionTableBench bench{max_sessions};
        const auto send_attack = [&] { // 17 addresses with 64 ports each, which keep sending
            for (std::uint32_t i = 0; i < 17 * 64; ++i) {
                const Endpoint from = ipv4_endpoint(kAttackerAddress + i / 64,
                                                    static_cast<std::uint16_t>(1000 + i % 64));
                bench.send_from_client(from, 'c');
                bench.send_from_client(from, 'v');
            }
        };
        for (int i = 0; i < 20; ++i) {
            send_attack();
            bench.advance_time(milliseconds{500});
        }
        CHECK(bench.count_sessions(ClientStanding::verified) <= max_sessions / 8);
        CHECK(bench.count_sessions(ClientStanding::unverified) <= max_sessions / 4);
        for (std::uint32_t i = 0; i < 10; ++i) {
            CHECK(measure_join_time(bench, ipv4_endpoint(kHonestAddress + i, 1000), send_attack) <=
                  milliseconds{2000});
        }
    }
}

TEST_CASE("clients that join a small table at the same time do not evict each other") {
    for (const std::size_t max_sessions : {std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
        CAPTURE(max_sessions);
        SessionTableBench bench{max_sessions};
        std::vector<Endpoint> clients;
        for (std::uint32_t i = 0; i < max_sessions; ++i) {
            clients.push_back(ipv4_endpoint(kHonestAddress + i, 1000));
        }
        for (const char letter : {'c', 'v'}) {
            for (const Endpoint& each : clients) {
                CHECK(bench.send_from_client(each, letter));
            }
        }
        bench.send_from_server(clients, 'm');
        CHECK(bench.count_sessions(ClientStanding::player) == max_sessions);
        CHECK_FALSE(bench.send_from_client(ipv4_endpoint(kAttackerAddress, 1000), 'c'));
        CHECK(bench.count_with_session(clients) == max_sessions);
    }
}

TEST_CASE("one address cannot fill the table, even if all of its clients are players") {
    SessionTableBench bench{64};
    std::vector<Endpoint> all;
    for (std::uint16_t i = 0; i < 64; ++i) {
        all.push_back(ipv4_endpoint(kAttackerAddress, static_cast<std::uint16_t>(1000 + i)));
        bench.join_player(all.back());
        bench.advance_time(milliseconds{500});
        bench.send_from_server(all, 'm');
    }
    CHECK(bench.count_sessions(ClientStanding::player) == 32);
    CHECK(bench.join_player(ipv4_endpoint(kHonestAddress, 1000)));
}

TEST_CASE("a player is not evicted, whatever other clients send") {
    SessionTableBench bench{16};
    const auto players = bench.join_players(kHonestAddress, 16);
    for (int second = 0; second < 30; ++second) {
        for (std::uint32_t i = 0; i < 100; ++i) {
            bench.send_from_client(
                ipv4_endpoint(kAttackerAddress + i, static_cast<std::uint16_t>(second)),
                i % 2 == 0 ? 'c' : 'v');
        }
        for (std::size_t i = 0; i < players.size(); ++i) {
            // Half of the players load a map. The server sends them only what keeps their slots.
            bench.send_from_server(players[i], i % 2 == 0 ? 'm' : 'k');
        }
        bench.advance_time(milliseconds{1000});
    }
    CHECK(bench.count_with_session(players) == players.size());
    CHECK(bench.count_sessions(ClientStanding::player) == players.size());
}

TEST_CASE(
    "a client that the server has dropped is evicted for a new client, however much it sends") {
    SessionTableBench bench{16};
    const Endpoint playing = bench.join_players(kHonestAddress, 1).front();
    const auto gone = bench.join_players(kAttackerAddress, 15, {playing});
    const Endpoint late = ipv4_endpoint(kHonestAddress + 1, 1000);
    const auto send_from_gone = [&] {
        for (const Endpoint& each : gone) {
            bench.send_from_client(each, 'x');
            bench.send_from_client(each, 'i');
            bench.send_from_server(each, 'i'); // an answer with server info does not show play
        }
        bench.send_from_server(playing, 'm');
    };
    CHECK_FALSE(bench.send_from_client(late, 'c')); // the server is full
    CHECK(measure_join_time(bench, late, send_from_gone) <= milliseconds{4000});
    CHECK(bench.count_with_session({playing}) == 1);
}

TEST_CASE("while the server sends nothing to any client, no player is evicted") {
    SessionTableBench bench{16};
    const auto players = bench.join_players(kHonestAddress, 16);
    for (int second = 0; second < 20; ++second) { // the client loads a map
        bench.advance_time(milliseconds{1000});
        bench.send_from_client(
            ipv4_endpoint(kAttackerAddress, static_cast<std::uint16_t>(1000 + second)), 'c');
    }
    CHECK(bench.count_with_session(players) == players.size());
}

TEST_CASE("at the limit of an address, a new client replaces only a player that has left") {
    struct Row {
        std::string_view name;
        bool client_sends;
        bool server_sends;
        bool others_play;
        bool is_evicted;
    };

    const Row rows[]{
        {"plays", true, true, true, false},
        {"is silent, as its close or its connection was lost", false, true, true, false},
        {"plays on a server that hangs", true, false, false, false},
        {"has left", false, false, true, true},
        {"has left as the last one", false, false, false, true},
        {"sends to a server that dropped it", true, false, true, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionTableBench bench{8}; // at most 4 sessions of an address
        std::vector<Endpoint> all;
        for (std::uint16_t i = 0; i < 4; ++i) {
            all.push_back(ipv4_endpoint(kHonestAddress, static_cast<std::uint16_t>(1000 + i)));
            REQUIRE(bench.join_player(all.back()));
            bench.advance_time(milliseconds{500});
            for (const Endpoint& each : all) {
                bench.send_from_client(each, 'x');
                bench.send_from_server(each, 'm');
            }
        }
        const Endpoint next = ipv4_endpoint(kHonestAddress, 2000);
        milliseconds waited{0};
        for (; waited < milliseconds{5000} && !bench.send_from_client(next, 'c');
             waited += milliseconds{500}) {
            bench.advance_time(milliseconds{500});
            for (const Endpoint& each : all) {
                const bool is_first = each == all.front();
                if (!is_first || row.client_sends) {
                    bench.send_from_client(each, 'x');
                }
                if (is_first ? row.server_sends : row.others_play) {
                    bench.send_from_server(each, 'm');
                }
            }
        }
        CHECK(bench.count_with_session({next}) == (row.is_evicted ? 1U : 0U));
        CHECK(bench.count_with_session({all[0]}) == (row.is_evicted ? 0U : 1U));
        CHECK(bench.count_with_session({all[1], all[2], all[3]}) == 3);
        CHECK(waited >= milliseconds{3000});
        CHECK(bench.join_player(next) == row.is_evicted);
        const auto refused = bench.counters().new_clients.rejected_by_address_limit.value();
        // The limit holds.
        CHECK_FALSE(bench.send_from_client(ipv4_endpoint(kHonestAddress, 3000), 'v'));
        CHECK(bench.counters().new_clients.rejected_by_address_limit.value() == refused + 1);
        CHECK(bench.counters().datagrams_without_session.value() == 0);
        CHECK(bench.send_from_client(all[0], 'c') !=
              row.is_evicted); // an evicted client does not come back
    }
}

TEST_CASE("each network has a limited share of the sessions without a server slot") {
    struct Row {
        std::string_view name;
        std::size_t varied; ///< index of the network byte that differs; 3: none; 4: IPv4
        std::size_t part;   ///< one network's share of the pool: 1 / part
    };

    const Row rows[]{{"an IPv4 address", 4, 8}, {"a /64", 3, 8}, {"a /56", 2, 4}, {"a /48", 1, 2}};
    const auto client = [](const Row& row, std::uint32_t i, std::uint32_t first_port) {
        const auto port = static_cast<std::uint16_t>(first_port + i);
        std::array<std::uint8_t, 3> networks{1, 1, 1};
        if (row.varied < networks.size()) {
            networks[row.varied] = static_cast<std::uint8_t>(i);
        }
        return row.varied == 4 ? ipv4_endpoint(kAttackerAddress, port)
                               : ipv6_endpoint(networks, port);
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionTableBench bench{1024};
        for (std::uint32_t i = 0; i < 2000; ++i) {
            const Endpoint from = client(row, i, 1000);
            bench.send_from_client(from, 'c');
            bench.send_from_client(from, 'v');
            bench.advance_time(milliseconds{20});
            bench.send_from_client(client(row, i, 10'000), 'c');
        }
        CHECK(bench.count_sessions(ClientStanding::verified) == 128 / row.part);
        CHECK(bench.count_sessions(ClientStanding::unverified) <= 256 / row.part);
        CHECK(bench.join_player(ipv4_endpoint(kHonestAddress, 1000)));
    }
}

TEST_CASE("the oldest session of the network with the most sessions is evicted first") {
    SessionTableBench bench{64}; // at most 8 verified sessions
    std::vector<Endpoint> clients;
    const auto verify = [&](const Endpoint& client) {
        clients.push_back(client);
        bench.send_from_client(client, 'c');
        bench.send_from_client(client, 'v');
        bench.advance_time(milliseconds{100});
    };
    for (std::uint32_t i = 0; i < 8; ++i) {
        verify(ipv4_endpoint(kHonestAddress + i, 1000));
    }
    verify(ipv6_endpoint({1, 1, 1}, 1));
    // If every client has one session, the oldest session is evicted.
    CHECK(bench.count_with_session({clients[0]}) == 0);
    CHECK(bench.count_with_session(clients) == 8);
    verify(ipv6_endpoint({1, 1, 1}, 2)); // a second client of a /64, whose share is one session
    CHECK(bench.count_with_session({clients[8]}) == 0);
    CHECK(bench.count_with_session({clients[1], clients[9]}) == 2);
}

TEST_CASE("a flood with a player's forged address does not prevent that player's handshake") {
    struct Row {
        char letter;
        int floods_before;
        milliseconds longest;
    };

    for (const Row& row : {Row{'c', 20, milliseconds{2000}}, Row{'i', 1, milliseconds{200}}}) {
        CAPTURE(row.letter);
        SessionTableBench bench{1024};
        std::uint32_t sent = 0;
        const auto send_flood = [&] { // 20,000 datagrams a second
            for (int i = 0; i < 2000; ++i, ++sent) {
                const auto port = static_cast<std::uint16_t>(2000 + sent * 7919 % 60'000);
                bench.send_from_client(ipv4_endpoint(kHonestAddress, port), row.letter);
            }
        };
        for (int i = 0; i < row.floods_before; ++i) {
            send_flood();
            bench.advance_time(milliseconds{row.floods_before == 1 ? 0 : 100});
        }
        CHECK(measure_join_time(bench, ipv4_endpoint(kHonestAddress, 1000), send_flood) <=
              row.longest);
    }
}

TEST_CASE("datagrams with the proxy's or the server's own address are rejected") {
    SessionTableBench bench{16};
    const auto loopback = [](std::uint16_t port) { return ipv4_endpoint(0x7f000001, port); };
    // The server's answer would come back to the relay.
    CHECK_FALSE(bench.send_from_client(loopback(kListenPort), 'c'));
    CHECK_FALSE(bench.send_from_client(ipv4_endpoint(0x7f000002, kListenPort), 'i'));
    CHECK_FALSE(bench.send_from_client(loopback(kServerPort), 'c'));
    CHECK(bench.counters().new_clients.rejected_own_address.value() == 3);
    CHECK(bench.send_from_client(loopback(kListenPort + 1), 'c'));
    // A client may use any port.
    CHECK(bench.send_from_client(ipv4_endpoint(kHonestAddress, kListenPort), 'c'));
    CHECK(bench.send_from_client(ipv4_endpoint(kHonestAddress, kServerPort), 'c'));
}

TEST_CASE("all players are announced to the observer, other verified clients at a limited rate") {
    SessionTableBench bench{1024};
    const NewClientLimits limits;
    for (std::uint32_t i = 0; i < 400; ++i) {
        const Endpoint client = ipv4_endpoint(kAttackerAddress + i, 1000);
        bench.send_from_client(client, 'c');
        bench.send_from_client(client, 'v');
        if (i % 100 == 99) {
            bench.advance_time(milliseconds{100});
        }
    }
    CHECK(bench.counters().sessions_opened.value() >= limits.announcement_burst);
    CHECK(bench.counters().sessions_opened.value() <=
          limits.announcement_burst + limits.announcement_rate);
    const auto before = bench.counters().sessions_opened.value();
    const Endpoint player = ipv4_endpoint(kHonestAddress, 1000);
    bench.advance_time(milliseconds{250});
    CHECK(bench.join_player(player));
    CHECK(bench.counters().sessions_opened.value() == before + 1);
}

} // namespace
