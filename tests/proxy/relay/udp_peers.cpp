#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <fcntl.h>
#include <poll.h>

namespace tw::relay::test {

bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kMaxWait;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
}

Bytes make_payload(std::size_t size, std::uint32_t number) {
    Bytes bytes(size);
    std::uint32_t state = number * 2654435761U + 1;
    for (auto& byte : bytes) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<std::byte>(state >> 24U);
    }
    return bytes;
}

base::Endpoint ipv4_endpoint(std::uint32_t address, std::uint16_t port) {
    const Udp::endpoint endpoint{boost::asio::ip::address_v4{address}, port};
    return base::endpoint_from(endpoint.data());
}

base::UniqueFd duplicate_descriptor(int descriptor) {
    return base::UniqueFd{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
}

Peer::Peer(const boost::asio::ip::address& address, std::uint16_t port) {
    const Udp::endpoint local{address, port};
    socket_.open(local.protocol());
    socket_.set_option(boost::asio::socket_base::receive_buffer_size{4 * 1024 * 1024});
    socket_.bind(local);
}

void Peer::send(const Bytes& bytes, const Udp::endpoint& to) {
    boost::system::error_code refused; // ignored: it concerns an earlier datagram
    socket_.send_to(boost::asio::buffer(bytes), to, 0, refused);
}

std::optional<Bytes> Peer::receive(std::chrono::milliseconds patience) {
    static constexpr std::size_t kMaxDatagram = 65'536;
    pollfd poll{socket_.native_handle(), POLLIN, 0};
    if (::poll(&poll, 1, static_cast<int>(patience.count())) != 1) {
        return std::nullopt;
    }
    Bytes bytes(kMaxDatagram);
    boost::system::error_code error;
    bytes.resize(socket_.receive_from(boost::asio::buffer(bytes), sender_, 0, error));
    return error ? std::nullopt : std::optional{bytes};
}

EchoServer::EchoServer(const boost::asio::ip::address& address)
    : peer_{address}, thread_{[this] { run(); }} {}

EchoServer::~EchoServer() {
    stopping_ = true;
    thread_.join();
}

void EchoServer::run() {
    while (!stopping_) {
        const auto bytes = peer_.receive(std::chrono::milliseconds{5});
        if (bytes && (bytes->empty() || std::to_integer<int>(bytes->front()) != ignored_)) {
            peer_.send(*bytes, peer_.sender());
        }
    }
}

Options make_relay_options(const Udp::endpoint& server) {
    Options options;
    options.server = {.host = server.address().to_string(),
                      .port = server.port(),
                      .listen = {Udp::endpoint{server.address(), 0}}};
    return options;
}

std::vector<EventCopy> take_all_events(Ring& ring) {
    std::vector<EventCopy> events;
    ring.consume_events([&](const RelayEvent& event) {
        if (event.kind == EventKind::new_observer) {
            return;
        }
        events.push_back({event, {event.bytes.begin(), event.bytes.end()}});
        events.back().event.bytes = {};
    });
    return events;
}

std::size_t count_events(const std::vector<EventCopy>& events, EventKind kind) {
    return static_cast<std::size_t>(
        std::ranges::count(events, kind, [](const EventCopy& kept) { return kept.event.kind; }));
}

std::size_t count_events(const std::vector<EventCopy>& events, CloseReason reason) {
    return static_cast<std::size_t>(std::ranges::count_if(events, [&](const EventCopy& kept) {
        return kept.event.kind == EventKind::close && kept.event.reason == reason;
    }));
}

Impairment parse_impairment_text(std::string_view text, std::uint64_t seed) {
    return parse_impairment(text, seed).value();
}

TestRings::TestRings(unsigned threads, std::size_t bytes) {
    for (unsigned i = 0; i < threads; ++i) {
        rings.push_back(&memory.emplace_back(bytes));
    }
}

TestRelay::TestRelay(const Options& options, std::size_t ring_bytes, bool starts,
                     std::vector<base::UniqueFd> listening)
    : TestRings{options.threads, ring_bytes}, Relay{options, rings, nullptr, std::move(listening)} {
    if (starts) {
        start();
    }
}

bool TestRelay::echoes_datagram(Peer& client, std::uint32_t number, ServerIndex server) const {
    const Bytes sent = make_payload(64, number);
    client.send(sent, listen_address(server));
    return client.receive() == sent && client.sender() == listen_address(server);
}

std::vector<EventCopy> TestRelay::take_events() {
    std::vector<EventCopy> all;
    for (Ring& ring : memory) {
        std::ranges::move(take_all_events(ring), std::back_inserter(all));
    }
    return all;
}

std::vector<EventCopy> TestRelay::stop_and_take_events() {
    stop();
    join();
    return take_events();
}

} // namespace tw::relay::test
