#pragma once

#include "proxy/relay/relay.h"
#include "tests/support/local_ring.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>

namespace tw::relay::test {

using Udp = boost::asio::ip::udp;
using Bytes = std::vector<std::byte>;

/// How long a test waits for an expected event; it goes on as soon as the event happens.
inline constexpr std::chrono::seconds kMaxWait{10};

inline constexpr auto kC2sIndex = static_cast<std::size_t>(Direction::c2s);
inline constexpr auto kS2cIndex = static_cast<std::size_t>(Direction::s2c);

/// Waits up to kMaxWait until the condition holds. Returns whether it holds.
bool eventually(const std::function<bool()>& condition);

/// Returns `size` bytes, which differ for each `number`.
Bytes make_payload(std::size_t size, std::uint32_t number);

/// Returns an IPv4 endpoint. `address`: in host byte order.
base::Endpoint ipv4_endpoint(std::uint32_t address, std::uint16_t port = 0);

/// Returns a duplicate of the descriptor.
base::UniqueFd duplicate_descriptor(int descriptor);

/// A blocking UDP socket on loopback, at a port that the system chooses.
class Peer {
  public:
    explicit Peer(const boost::asio::ip::address& address = boost::asio::ip::address_v4::loopback(),
                  std::uint16_t port = 0);

    [[nodiscard]] Udp::endpoint endpoint() const { return socket_.local_endpoint(); }

    void send(const Bytes& bytes, const Udp::endpoint& to);
    /// Returns the next datagram; nullopt if none arrives in time.
    std::optional<Bytes> receive(std::chrono::milliseconds patience = kMaxWait);

    /// Returns the sender of the latest received datagram.
    [[nodiscard]] const Udp::endpoint& sender() const { return sender_; }

    [[nodiscard]] Udp::socket& socket() { return socket_; }

  private:
    boost::asio::io_context io_;
    Udp::socket socket_{io_};
    Udp::endpoint sender_;
};

/// Sends each received datagram back to its sender, until destroyed.
class EchoServer {
  public:
    explicit EchoServer(
        const boost::asio::ip::address& address = boost::asio::ip::address_v4::loopback());
    ~EchoServer();
    EchoServer(const EchoServer&) = delete;
    EchoServer& operator=(const EchoServer&) = delete;

    [[nodiscard]] Udp::endpoint endpoint() const { return peer_.endpoint(); }

    /// From now on, does not answer datagrams that begin with this byte.
    void ignore_datagrams_with(std::byte first) { ignored_ = std::to_integer<int>(first); }

  private:
    void run();

    Peer peer_;
    std::atomic<bool> stopping_{false};
    std::atomic<int> ignored_{-1};
    std::thread thread_;
};

/// Returns options with one listener on the server's loopback address, at a port that the system
/// chooses.
Options make_relay_options(const Udp::endpoint& server);

/// Returns the impairment that a valid text describes.
Impairment parse_impairment_text(std::string_view text, std::uint64_t seed = 1);

/// A copy of an event and its bytes.
struct EventCopy {
    RelayEvent event;
    Bytes bytes;
};

/// Removes and returns all events of the ring.
std::vector<EventCopy> take_all_events(Ring& ring);

std::size_t count_events(const std::vector<EventCopy>& events, EventKind kind);
/// Returns the number of sessions that were closed for this reason.
std::size_t count_events(const std::vector<EventCopy>& events, CloseReason reason);

struct TestRings {
    TestRings(unsigned threads, std::size_t bytes);

    std::deque<tw::test::LocalRing> memory;
    std::vector<Ring*> rings;
};

/// A relay with a ring for each of its threads.
class TestRelay : public TestRings, public Relay {
  public:
    static constexpr std::size_t kRingBytes = std::size_t{4} << 20U;

    /// Starts the relay, unless `starts` is false.
    explicit TestRelay(const Options& options, std::size_t ring_bytes = kRingBytes,
                       bool starts = true, std::vector<base::UniqueFd> listening = {});

    /// Returns the first listening address for a server's clients.
    [[nodiscard]] Udp::endpoint listen_address(ServerIndex server = 0) const {
        return listen_endpoints(server)[0];
    }

    /// Sends a client's datagram. Returns whether its echo comes from the address it was sent to.
    bool echoes_datagram(Peer& client, std::uint32_t number = 1, ServerIndex server = 0) const;

    /// Removes and returns the events of all rings.
    std::vector<EventCopy> take_events();
    /// Stops the relay. Returns the events that are left in its rings.
    std::vector<EventCopy> stop_and_take_events();
};

} // namespace tw::relay::test
