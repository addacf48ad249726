#include "proxy/relay/session_table.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/input.h"
#include "tests/support/local_ring.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>

#include <boost/asio/ip/udp.hpp>
#include <sys/epoll.h>

/// Fuzzes admission with batches of datagrams from many sources and from the server, at different
/// times. The input's first byte chooses the limits, and each further byte the next step. Pools and
/// the session table must keep to their sizes, a session that the server plays with must stay, and
/// the observer must be told of the begin and the end of every session exactly once.
namespace {

using namespace tw::base;
using namespace tw::relay;
using std::chrono::milliseconds;
using tw::fuzz::demand;
using tw::fuzz::Input;

/// A protocol with one letter in each datagram. Some letters begin a connection. The server's 'p'
/// is a secret that the client's 'q' returns, and with 'w' the server plays with the client.
DatagramVerdict judge_letter(RememberedHandshakes& memory, Direction direction,
                             std::span<const std::byte> datagram) {
    const char letter = datagram.empty() ? '\0' : static_cast<char>(datagram[0]);
    std::byte& told = memory.bytes[0];
    std::byte& returned = memory.bytes[1];
    if (direction == Direction::s2c) {
        told |= letter == 'p' ? std::byte{1} : std::byte{0};
        const bool plays = letter == 'w';
        return {.standing = !plays                    ? ClientStanding::connless
                            : returned != std::byte{} ? ClientStanding::player
                                                      : ClientStanding::unverified_player,
                .shows_player = plays || letter == 'k'};
    }
    returned |= letter == 'q' ? told : std::byte{0};
    const ClientStanding standing = letter == 'q' && returned != std::byte{0}
                                        ? ClientStanding::verified
                                    : letter == 'i' || letter == 'j' ? ClientStanding::connless
                                    : letter == 'c' || letter == 'q' ? ClientStanding::unverified
                                                                     : ClientStanding::unrecognised;
    const RequestKind request = letter == 'i'   ? RequestKind::server_info
                                : letter == 'j' ? RequestKind::rare
                                                : RequestKind::none;
    return {.standing = standing, .request = request, .is_answered = letter == 'i'};
}

/// Every 'i' of a client is the same request, and every 'i' of the server is its answer.
constexpr AnswerFunctions kRepeating{
    .read_question =
        [](std::span<const std::byte> datagram) {
            return ClientQuestion{.kind = static_cast<std::uint8_t>(
                                      !datagram.empty() && datagram[0] == std::byte{'i'} ? 1 : 0)};
        },
    .classify_answer =
        [](std::span<const std::byte> datagram, const ClientQuestion&) {
            return datagram.empty() || datagram[0] != std::byte{'i'} ? AnswerPartKind::none
                                                                     : AnswerPartKind::first;
        },
    .write_answer =
        [](std::span<const std::byte> part, const ClientQuestion&, std::span<std::byte> out) {
            std::ranges::copy(part, out.begin());
            return part.size();
        }};

NewClientLimits limits_from_choice(std::uint8_t choice) {
    NewClientLimits limits;
    limits.unverified_timeout = milliseconds{(choice & 1U) != 0 ? 3000 : 100};
    limits.connless_timeout = milliseconds{(choice & 2U) != 0 ? 2000 : 50};
    limits.min_unverified_time = milliseconds{(choice & 4U) != 0 ? 250 : 1};
    limits.max_per_address = (choice & 8U) != 0 ? 2 : 0;
    limits.player_datagram_rate = (choice & 16U) != 0 ? 10'000 : 2;
    return limits;
}

/// Returns a client's endpoint. Half of the clients share an address or a network.
Endpoint client_endpoint(std::size_t number) {
    Endpoint made{.port = static_cast<std::uint16_t>(1000 + number)};
    constexpr std::size_t kFamilies = 4;
    const auto last = static_cast<std::uint8_t>(number / kFamilies);
    switch (number % kFamilies) {
    case 0: // one address with many ports
        made.address = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
        break;
    case 1:
        made.address = {std::byte{198}, std::byte{51}, std::byte{100}, std::byte{last}};
        break;
    case 2: // loopback, which has no limit for an address
        made.address = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
        break;
    default: // many addresses of one /64
        made.address = {std::byte{0x20}, std::byte{1}, std::byte{0xd}, std::byte{0xb8}};
        made.address.back() = std::byte{last};
        made.v6 = true;
        break;
    }
    return made;
}

/// Checks the events that the observer receives.
class EventChecker {
  public:
    void check_events(Ring& ring) {
        ring.consume_events([this](const RelayEvent& event) { check_event(event); });
    }

    [[nodiscard]] bool are_all_closed() const { return open_.empty(); }

    [[nodiscard]] std::uint64_t opened_count() const { return begun_; }

  private:
    void check_event(const RelayEvent& event) {
        switch (event.kind) {
        case EventKind::open:
            demand(event.session > last_ && open_.insert(event.session).second);
            last_ = event.session;
            ++begun_;
            break;
        case EventKind::close:
            demand(open_.erase(event.session) == 1);
            break;
        case EventKind::new_observer:
            break;
        case EventKind::datagram:
        case EventKind::gap:
        case EventKind::resync:
            demand(open_.contains(event.session));
            break;
        }
    }

    std::set<std::uint32_t> open_;
    std::uint32_t last_ = 0;
    std::uint64_t begun_ = 0;
};

constexpr std::size_t kClients = 64;

/// A session table with its clients, its server and its observer.
class FuzzedSessionTable {
  public:
    FuzzedSessionTable(std::uint8_t choice, Ring& ring)
        : options_{options_from_choice(choice)}, ring_{&ring}, shared_{options_, numbers_, 0,
                                                                       server_endpoint(),
                                                                       ClientAddressMode::loopback},
          copier_{&ring, observation_.observer},
          table_{shared_, listeners_, ready_.get(), copier_, observation_.counters[0], rounds_} {}

    /// Sends a batch with this number of datagrams from clients.
    void send_from_clients(Input& in) {
        rounds_.begin_batch(now_);
        for (std::size_t left = 1 + in.below(8); left > 0; --left) {
            SocketAddress address = socket_address_of(client_endpoint(in.below(kClients)));
            const std::array letter{in.take<std::byte>()};
            msghdr header{};
            header.msg_name = &address;
            header.msg_namelen = sizeof address;
            if (Session* const session = table_.find_or_open_session(header, letter, 0)) {
                session->is_active = true;
                forward_datagram(*session, Direction::c2s, letter);
            }
        }
        rounds_.end_batch();
        check_table();
    }

    /// Sends datagrams from the server to some of the clients.
    void send_from_server(Input& in) {
        rounds_.begin_batch(now_);
        const std::array letter{in.take<std::byte>()};
        for (std::size_t left = 1 + in.below(8); left > 0; --left) {
            if (Session* const session =
                    table_.sessions().find(client_endpoint(in.below(kClients)), 0)) {
                table_.note_server_answer(*session);
                answered_ = now_;
                forward_datagram(*session, Direction::s2c, letter);
            }
        }
        rounds_.end_batch();
        check_table();
    }

    void advance_time(milliseconds time) {
        now_ += time;
        const auto check_timeout = [this](Session& session) {
            table_.check_timeout(session, now_);
        };
        while (!rounds_.check_due_sessions(now_, check_timeout)) {
        }
        check_table();
    }

    void close_all_sessions() {
        closing_ = true;
        table_.close_sessions(CloseReason::shutdown);
        check_table();
        demand(heard_.are_all_closed() && shared_.num_sessions == 0);
        const LiveCounters& counters = observation_.counters[0];
        demand(counters.sessions_opened.value() == heard_.opened_count());
        demand(counters.sessions_closed.value() == heard_.opened_count());
    }

  private:
    static Options options_from_choice(std::uint8_t choice) {
        Options options;
        options.max_sessions = 4 + choice % 13U;
        options.socket_buffer_bytes = 0;
        options.idle_timeout = kIdle;
        options.judge_datagram = judge_letter;
        options.answer_functions = kRepeating;
        options.new_client_limits = limits_from_choice(choice);
        return options;
    }

    static constexpr milliseconds kIdle{5000};
    static constexpr milliseconds kLooks{501};

    static boost::asio::ip::udp::endpoint server_endpoint() {
        constexpr std::uint16_t kDiscard = 9; // no datagram ever arrives there
        return {boost::asio::ip::address_v4::loopback(), kDiscard};
    }

    static SocketAddress socket_address_of(const Endpoint& endpoint) {
        SocketAddress name{};
        const auto asio = to_asio_endpoint(endpoint);
        std::memcpy(&name, asio.data(), asio.size());
        return name;
    }

    void forward_datagram(Session& session, Direction direction,
                          std::span<const std::byte> datagram) {
        table_.examine_datagram(session, direction, datagram);
        table_.copy_to_observer(session, 0, direction, datagram);
        if (session.standing == ClientStanding::player && direction == Direction::s2c &&
            (datagram[0] == std::byte{'w'} || datagram[0] == std::byte{'k'})) {
            players_[session.number] = now_;
        }
    }

    /// Checks the table after every batch.
    void check_table() {
        copier_.commit_events();
        heard_.check_events(*ring_);
        SessionIndex& all = table_.sessions();
        const SessionPoolSizes& pools = shared_.pools;
        demand(all.sessions_of_standing(ClientStanding::unverified).size() <= pools.unverified);
        demand(all.sessions_of_standing(ClientStanding::connless).size() <= pools.connless);
        demand(all.sessions_of_standing(ClientStanding::unverified_player).size() <=
               pools.unverified_players);
        demand(all.sessions_of_standing(ClientStanding::verified).size() <= pools.verified);
        std::size_t places = 0;
        std::set<std::uint32_t> here;
        table_.sessions().for_each_session([&](const Session& session) {
            places += session.counts_against_limit ? 1 : 0;
            here.insert(session.number);
            demand(!session.is_closed);
            demand(pools.per_address == 0 || is_loopback(session.observed.client) ||
                   !session.counts_against_limit ||
                   count_address_sessions(session) <= pools.per_address);
        });
        demand(shared_.num_sessions == places && places <= options_.max_sessions);
        std::erase_if(players_, [&](const auto& each) {
            const bool gone = !here.contains(each.first);
            // The table checks this only every half a second, so a shorter time may have passed.
            const auto forgotten = options_.new_client_limits.forgotten_time - kLooks;
            demand(!gone || closing_ || now_ - each.second >= kIdle ||
                   answered_ - each.second >= forgotten);
            return gone;
        });
    }

    /// Returns the number of sessions of the session's address that are in the table.
    [[nodiscard]] std::size_t count_address_sessions(const Session& session) {
        std::size_t count = 0;
        table_.sessions().for_each_session([&](const Session& other) {
            const bool same = narrowest_network(other.observed.client) ==
                              narrowest_network(session.observed.client);
            count += static_cast<std::size_t>(other.counts_against_limit && same);
        });
        return count;
    }

    Options options_;
    Ring* ring_;
    ObserverSharedMemory observation_{.observer{1}};
    LastSessionNumbers numbers_;
    SharedServerData shared_;
    Clock::time_point now_ = Clock::now();
    UniqueFd ready_{::epoll_create1(EPOLL_CLOEXEC)};
    std::vector<Listener> listeners_{1};
    DatagramCopier copier_;
    SessionTimers rounds_{std::min({kIdle, options_.new_client_limits.unverified_timeout,
                                    options_.new_client_limits.connless_timeout}),
                          now_};
    SessionTable table_;
    EventChecker heard_;
    /// For each session number, the time at which the server last played with the client.
    std::map<std::uint32_t, Clock::time_point> players_;
    Clock::time_point answered_{}; ///< time of the server's last datagram
    bool closing_ = false;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static tw::test::LocalRing ring{Ring::kMinBytes};
    Input in{data, size};
    FuzzedSessionTable scene{in.take<std::uint8_t>(), ring};
    while (!in.empty()) {
        switch (in.below(4)) {
        case 0:
            scene.send_from_server(in);
            break;
        case 1:
            scene.advance_time(milliseconds{1 + in.take<std::uint16_t>() % 8000});
            break;
        default:
            scene.send_from_clients(in);
            break;
        }
    }
    scene.close_all_sessions();
    return 0;
}
