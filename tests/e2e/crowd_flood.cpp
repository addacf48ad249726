// Sends datagrams from forged addresses as fast as one core can: CONNECTs, info requests and garbage, mixed. For networks of
// one's own only: it needs CAP_NET_RAW, and somebody else's network would not let the addresses pass.
//   crowd_flood ADDRESS PORT SECONDS SOURCES [mixed|connect|rhythm]
// mixed:   each datagram is one of the three, from any source
// connect: CONNECTs only
// rhythm:  CONNECTs only, each source every 500 ms, as a waiting client sends them
// Sources are 10.64.0.0 and up, with two ports each. Prints how many it sent.
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
#include <unistd.h>

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
    Flood(const sockaddr_in& to, std::uint32_t sources, std::string_view kind)
        : to_{to}, sources_{sources}, kind_{kind}, socket_{
                                                       ::socket(AF_INET, SOCK_RAW, IPPROTO_RAW)} {
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
            if (kind_ == "rhythm") { // all sources once in 500 ms
                const auto due = static_cast<std::uint64_t>(
                    std::chrono::duration<double>(now - begin).count() * 2 * sources_);
                if (due < sent + kBatch) {
                    std::this_thread::sleep_for(std::chrono::microseconds{50});
                    continue;
                }
            }
            for (std::size_t i = 0; i < kBatch; ++i) {
                make(packets_[i]);
                vectors_[i] = {packets_[i].bytes.data(), packets_[i].size};
            }
            const int count = ::sendmmsg(socket_, messages_.data(), kBatch, 0);
            sent += count > 0 ? static_cast<std::uint64_t>(count) : 0;
        }
        return sent;
    }

  private:
    void make(Packet& packet) {
        const std::uint32_t number = kind_ == "rhythm" ? next_++ % sources_ : draw() % sources_;
        const auto port = static_cast<std::uint16_t>(20'000 + (number & 1U));
        const std::uint32_t what = kind_ == "mixed" ? draw() % 3 : 0;
        std::array<char, 40> garbage{};
        for (char& each : garbage) {
            each = static_cast<char>(draw());
        }
        packet.fill(kFirstSource + number / 2, port, to_,
                    what == 0   ? kConnect
                    : what == 1 ? kInfo
                                : std::string_view{garbage.data(), garbage.size()});
    }

    std::uint32_t draw() { return static_cast<std::uint32_t>(random_()); }

    sockaddr_in to_;
    std::uint32_t sources_;
    std::string_view kind_;
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
        fmt::print(stderr, "crowd_flood ADDRESS PORT SECONDS SOURCES [mixed|connect|rhythm]\n");
        return 2;
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
    ::inet_pton(AF_INET, argv[1], &to.sin_addr);
    Flood flood{to, static_cast<std::uint32_t>(std::atoi(argv[4])), argc > 5 ? argv[5] : "mixed"};
    if (!flood.ready()) {
        fmt::print(stderr, "crowd_flood: it needs CAP_NET_RAW\n");
        return 1;
    }
    const double seconds = std::atof(argv[3]);
    const auto sent = flood.run(
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>{seconds}));
    fmt::print("{} datagrams, {:.0f} a second\n", sent, static_cast<double>(sent) / seconds);
    return 0;
}
