// Loads a UDP relay with many clients against an echo server of its own, and reports throughput,
// loss and round-trip times as one JSON object.
//
// Without --rate, every client keeps --window datagrams in transit, which gives the highest rate without
// loss. With --rate, every client sends this many datagrams a second, evenly spread over time and clients.
//
// First each client proves its address to the proxy: it sends a datagram like a server's CONNECTACCEPT with
// a token. The server's echo shows the proxy that token, and the client returns it. The echo of a chunk then
// shows that the server has accepted the client.

#include "tests/bench/relay/histogram.h"
#include "tests/bench/relay/load_support.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace tw::bench;

constexpr std::size_t kBatch = 64;
constexpr std::size_t kMaxDatagram = 2048;
/// A datagram without an answer for this long counts as lost, and another may be sent instead.
constexpr std::int64_t kGiveUp = kSecond / 2;
/// With --rate: a client that is late by more skips datagrams, so that there is time to receive.
constexpr std::int64_t kMostBehind = kSecond / 100;
/// CONNECTACCEPT of DDNet: header of a control packet, its number, magic and token.
constexpr std::array<unsigned char, 12> kAccept{0x10, 0, 0, 2, 'T', 'K', 'E', 'N', 1, 2, 3, 4};
/// A packet with a chunk of one byte, followed by the token.
constexpr std::array<unsigned char, 10> kPlay{0, 0, 1, 0, 1, 2, 1, 2, 3, 4};
/// The pause between new clients, because a proxy admits only some of them a second.
constexpr std::chrono::milliseconds kBetweenClients{1};

struct Settings {
    std::uint16_t server_port = 0;
    std::uint16_t target_port = 0;
    unsigned clients = 64;
    unsigned window = 8;
    double rate = 0;
    double seconds = 3;
    double warm_up = 0.5;
    std::size_t size = 128;
    std::vector<int> pids;
};

struct Payload {
    std::int64_t sent;
    std::uint64_t sequence;
};

/// Buffers and headers for recvmmsg and sendmmsg.
struct SocketBatch {
    std::array<std::array<char, kMaxDatagram>, kBatch> buffers{};
    std::array<sockaddr_in, kBatch> names{};
    std::array<iovec, kBatch> vectors{};
    std::array<mmsghdr, kBatch> messages{};

    int receive(int fd, bool with_names, int flags) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            vectors[i] = {buffers[i].data(), kMaxDatagram};
            messages[i].msg_hdr = {};
            messages[i].msg_hdr.msg_iov = &vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
            if (with_names) {
                messages[i].msg_hdr.msg_name = &names[i];
                messages[i].msg_hdr.msg_namelen = sizeof names[i];
            }
        }
        return ::recvmmsg(fd, messages.data(), kBatch, flags, nullptr);
    }

    void send(int fd, std::size_t count) {
        std::size_t done = 0;
        while (done < count) {
            const int sent =
                ::sendmmsg(fd, &messages[done], static_cast<unsigned>(count - done), 0);
            done += sent > 0 ? static_cast<std::size_t>(sent) : 1;
        }
    }
};

void run_echo_server(std::uint16_t port, const std::atomic<bool>& stopping) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    const timeval timeout{.tv_sec = 0, .tv_usec = 50'000};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    auto name = loopback(port);
    if (::bind(fd, as_sockaddr(&name), sizeof name) != 0) {
        fmt::print(stderr, "relay_load: cannot bind the echo server to port {}\n", port);
        std::_Exit(2);
    }
    auto batch = std::make_unique<SocketBatch>();
    while (!stopping) {
        const int count = batch->receive(fd, true, MSG_WAITFORONE);
        for (std::size_t i = 0; count > 0 && i < static_cast<std::size_t>(count); ++i) {
            batch->vectors[i].iov_len = batch->messages[i].msg_len;
        }
        if (count > 0) {
            batch->send(fd, static_cast<std::size_t>(count));
        }
    }
    ::close(fd);
}

struct Client {
    int fd = 0;
    std::uint64_t next_sequence = 0;
    std::uint64_t expected = 0;
    unsigned outstanding = 0;
    std::int64_t last_heard = 0;
};

class LoadGenerator {
  public:
    explicit LoadGenerator(const Settings& settings)
        : settings_{settings}, clients_(settings.clients), epoll_{::epoll_create1(0)} {
        const std::array ports{settings.server_port, settings.target_port};
        for (std::size_t i = 0; i < clients_.size(); ++i) {
            auto name = loopback(settings_.target_port);
            clients_[i].fd = client_socket(i, ports);
            ::connect(clients_[i].fd, as_sockaddr(&name), sizeof name);
            epoll_event event{};
            event.events = EPOLLIN;
            event.data.u64 = i;
            ::epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_[i].fd, &event);
            prove_address(clients_[i].fd);
        }
    }

    void run() {
        const auto start = now_ns();
        const auto measure = start + static_cast<std::int64_t>(settings_.warm_up * 1e9);
        const auto end = measure + static_cast<std::int64_t>(settings_.seconds * 1e9);
        next_send_ = start;
        std::int64_t cpu = 0;
        for (auto now = start; now < end; now = now_ns()) {
            if (!measuring_ && now >= measure) {
                measuring_ = true;
                measured_from_ = now;
                cpu = cpu_time(settings_.pids);
            }
            settings_.rate > 0 ? send_by_clock(now) : fill_windows(now);
            receive(settings_.rate > 0 ? std::max<std::int64_t>(next_send_ - now_ns(), 0)
                                       : kSecond / 100);
        }
        seconds_ = static_cast<double>(now_ns() - measured_from_) / 1e9;
        cpu_ns_ = static_cast<double>(cpu_time(settings_.pids) - cpu);
    }

    void print_report() {
        const double datagrams = 2.0 * static_cast<double>(received_);
        fmt::print("{{\"clients\":{},\"rate\":{},\"window\":{},\"size\":{},\"seconds\":{:.3f},"
                   "\"datagrams_per_second\":{:.0f},\"lost\":{},\"reordered\":{},"
                   "\"cpu_us_per_datagram\":{:.3f},\"cpu_share\":{:.3f},\"p50_us\":{:.1f},"
                   "\"p90_us\":{:.1f},\"p99_us\":{:.1f},\"p999_us\":{:.1f},\"max_us\":{:.1f}}}\n",
                   settings_.clients, settings_.rate, settings_.window, settings_.size, seconds_,
                   datagrams / seconds_, lost_, reordered_,
                   datagrams > 0 ? cpu_ns_ / 1e3 / datagrams : 0.0, cpu_ns_ / 1e9 / seconds_,
                   times_.microseconds_at(0.5), times_.microseconds_at(0.9),
                   times_.microseconds_at(0.99), times_.microseconds_at(0.999),
                   times_.microseconds_at(1));
    }

  private:
    static void prove_address(int fd) {
        for (const std::span<const unsigned char> each :
             {std::span<const unsigned char>{kAccept}, std::span<const unsigned char>{kAccept},
              std::span<const unsigned char>{kPlay}}) {
            pollfd answer{.fd = fd, .events = POLLIN, .revents = 0};
            std::array<char, kMaxDatagram> echoed{};
            do { // a client without an answer tries again
                ::send(fd, each.data(), each.size(), 0);
            } while (::poll(&answer, 1, static_cast<int>(kGiveUp / 1'000'000)) == 0);
            ::recv(fd, echoed.data(), echoed.size(), 0);
        }
        std::this_thread::sleep_for(kBetweenClients);
    }

    void send(Client& client, unsigned count, std::int64_t now) {
        count = std::min<unsigned>(count, kBatch);
        for (std::size_t i = 0; i < count; ++i) {
            const Payload payload{now, client.next_sequence++};
            std::memcpy(batch_->buffers[i].data(), &payload, sizeof payload);
            batch_->vectors[i] = {batch_->buffers[i].data(), settings_.size};
            batch_->messages[i].msg_hdr = {};
            batch_->messages[i].msg_hdr.msg_iov = &batch_->vectors[i];
            batch_->messages[i].msg_hdr.msg_iovlen = 1;
        }
        batch_->send(client.fd, count);
        client.outstanding += count;
    }

    void fill_windows(std::int64_t now) {
        if (now < next_look_) {
            return;
        }
        next_look_ = now + kGiveUp / 4;
        for (auto& client : clients_) {
            if (client.outstanding == 0 || now - client.last_heard > kGiveUp) {
                client.outstanding = 0;
                client.last_heard = now;
                send(client, settings_.window, now);
            }
        }
    }

    void send_by_clock(std::int64_t now) {
        const auto interval = static_cast<std::int64_t>(1e9 / (settings_.rate * settings_.clients));
        next_send_ = std::max(next_send_, now - kMostBehind);
        for (; next_send_ <= now; next_send_ += interval) {
            send(clients_[turn_++ % clients_.size()], 1, now_ns());
        }
    }

    void receive(std::int64_t timeout) {
        std::array<epoll_event, 256> events{};
        const timespec wait{.tv_sec = 0, .tv_nsec = timeout};
        const int ready = ::epoll_pwait2(epoll_, events.data(), events.size(), &wait, nullptr);
        for (int i = 0; i < ready; ++i) {
            Client& client = clients_[events[static_cast<std::size_t>(i)].data.u64];
            const int count = batch_->receive(client.fd, false, MSG_DONTWAIT);
            if (count <= 0) {
                continue;
            }
            const auto now = now_ns();
            for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
                count_answer(client, k, now);
            }
            client.last_heard = now;
            if (settings_.rate <= 0) {
                send(client, settings_.window - std::min(settings_.window, client.outstanding),
                     now);
            }
        }
    }

    void count_answer(Client& client, std::size_t k, std::int64_t now) {
        Payload payload{};
        std::memcpy(&payload, batch_->buffers[k].data(), sizeof payload);
        client.outstanding -= client.outstanding > 0 ? 1 : 0;
        if (payload.sequence < client.expected) {
            reordered_ += measuring_ ? 1 : 0;
        } else {
            lost_ += measuring_ ? payload.sequence - client.expected : 0;
            client.expected = payload.sequence + 1;
        }
        if (measuring_) {
            ++received_;
            times_.add(now - payload.sent);
        }
    }

    const Settings& settings_;
    std::vector<Client> clients_;
    int epoll_;
    std::unique_ptr<SocketBatch> batch_ = std::make_unique<SocketBatch>();
    Histogram times_;
    bool measuring_ = false;
    std::int64_t measured_from_ = 0;
    std::int64_t next_send_ = 0;
    std::int64_t next_look_ = 0;
    std::size_t turn_ = 0;
    std::uint64_t received_ = 0;
    std::uint64_t lost_ = 0;
    std::uint64_t reordered_ = 0;
    double seconds_ = 0;
    double cpu_ns_ = 0;
};

} // namespace

int main(int argc, char** argv) try {
    Settings settings;
    CLI::App app{"Loads a UDP relay and measures it"};
    app.add_option("--server-port", settings.server_port, "where the echo server listens")
        ->required();
    app.add_option("--target-port", settings.target_port, "where the clients send")->required();
    app.add_option("--clients", settings.clients)->check(CLI::Range(1, 10'000));
    app.add_option("--window", settings.window, "datagrams on their way a client")
        ->check(CLI::Range(1, 64));
    app.add_option("--rate", settings.rate, "datagrams a second a client; 0: as the window allows");
    app.add_option("--seconds", settings.seconds);
    app.add_option("--warm-up", settings.warm_up, "seconds before measuring");
    app.add_option("--size", settings.size)->check(CLI::Range(sizeof(Payload), kMaxDatagram));
    app.add_option("--pid", settings.pids, "processes whose CPU time is the relay's");
    CLI11_PARSE(app, argc, argv);

    std::atomic<bool> stopping{false};
    std::thread server{[&] { run_echo_server(settings.server_port, stopping); }};
    LoadGenerator load{settings};
    load.run();
    load.print_report();
    stopping = true;
    server.join();
    return 0;

} catch (const std::exception& error) {

    std::fprintf(stderr, "relay_load: %s\n", error.what());
    return 1;
}
