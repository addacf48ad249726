#pragma once

#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>

namespace tw::capture {

/// An address and port as a capture shows them.
struct CaptureEndpoint {
    boost::asio::ip::address address;
    std::uint16_t port = 0;

    friend bool operator==(const CaptureEndpoint&, const CaptureEndpoint&) = default;

    friend bool operator<(const CaptureEndpoint& left, const CaptureEndpoint& right) {
        return std::tie(left.address, left.port) < std::tie(right.address, right.port);
    }
};

/// "127.0.0.1:8303", "[::1]:8303"
[[nodiscard]] std::string to_string(const CaptureEndpoint& endpoint);

/// What a capture says of a session besides its traffic (sink/session_state.h).
struct CapturedState {
    CaptureEndpoint client;
    CaptureEndpoint server;
    std::vector<std::byte> bytes;
};

/// One UDP datagram of a capture.
struct CapturedDatagram {
    std::int64_t time = 0; ///< nanoseconds since 1970-01-01 UTC
    CaptureEndpoint source;
    CaptureEndpoint destination;
    std::span<const std::byte> payload;
    std::span<const std::byte> next{};    ///< payload of the one behind it, where that is at hand
    const CapturedState* state = nullptr; ///< of its session before it; null: nothing is said
    bool cut = false; ///< recorded shorter than it was sent: there is no payload
};

/// What was captured besides whole UDP datagrams.
struct CaptureCounts {
    std::uint64_t frames = 0;
    std::uint64_t datagrams = 0;
    std::uint64_t other = 0;       ///< not UDP over IPv4 or IPv6
    std::uint64_t reassembled = 0; ///< of the datagrams: that came in fragments
    std::uint64_t pieces = 0;      ///< frames that were reassembled, but for one of each datagram
    std::uint64_t repeats = 0;     ///< IP fragments that had been there before
    std::uint64_t merged = 0;      ///< frames that held several datagrams, which were split again
    std::uint64_t fragments = 0;   ///< IP fragments of datagrams that never became whole
    std::uint64_t cut = 0;         ///< recorded shorter than they were sent: datagrams, or unknown
    bool ended_early = false;      ///< the file ends inside a frame
};

/// What is no capture, or cannot be opened; the message says which and why.
class CaptureError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// One IP fragment of a UDP datagram.
struct Fragment {
    std::int64_t time = 0; ///< nanoseconds
    boost::asio::ip::address source{};
    boost::asio::ip::address destination{};
    std::uint32_t id = 0;
    std::size_t offset = 0; ///< of its bytes in the datagram
    bool more = false;      ///< it is not the last one
    std::span<const std::byte> bytes{};
};

/// Puts IP fragments together, in any order, as the hosts that receive them do.
///
/// Bounded: so many datagrams at a time, the oldest of which leaves for the next; so long; so many
/// pieces of each. Those that are whole are remembered where there is room, since what is captured in
/// two places is there twice.
/// Source:  RFC 791, RFC 8200 section 4.5; RFC 5722: overlapping pieces make the whole void.
class Fragments {
  public:
    static constexpr std::size_t kMaxDatagrams = 64;
    /// 64 KiB in the smallest pieces that IPv6 makes, and some.
    static constexpr std::size_t kMaxPieces = 64;
    /// As long as Linux waits for the rest (ipfrag_time).
    static constexpr std::int64_t kPatience = 30'000'000'000;
    /// A UDP length has 16 bits.
    static constexpr std::size_t kMaxBytes = 65535;

    /// What came of a fragment.
    struct Whole {
        std::span<const std::byte> bytes; ///< valid until the next call
        std::size_t pieces = 0;           ///< of which it was made
    };

    /// The datagram that is whole with it, if one is.
    [[nodiscard]] std::optional<Whole> add(const Fragment& fragment);

    /// Fragments that had been there before.
    [[nodiscard]] std::uint64_t repeats() const { return repeats_; }

  private:
    struct Piece {
        std::size_t begin;
        std::size_t end;
    };

    struct Partial {
        bool used = false;
        bool spoiled = false; ///< until its time is over: whatever else comes of it is void
        bool whole = false;   ///< handed out; kept to tell what comes again
        boost::asio::ip::address source{};
        boost::asio::ip::address destination{};
        std::uint32_t id = 0;
        std::int64_t began = 0;
        std::optional<std::size_t> size{}; ///< once the last piece is there
        std::size_t have = 0;              ///< bytes
        std::size_t num_pieces = 0;        ///< kept
        std::array<Piece, kMaxPieces> pieces{};
        std::vector<std::byte> bytes{}; ///< kept for its memory
    };

    /// What a piece is to those that are there.
    enum class Fit : std::uint8_t { fits, again, spoils };

    [[nodiscard]] Partial& place_of(const Fragment& fragment);
    static void begin(Partial& partial, const Fragment& fragment);
    [[nodiscard]] static bool is_of_whole(const Partial& partial, const Fragment& fragment);
    [[nodiscard]] static Fit fit_of(const Partial& partial, const Fragment& fragment);

    std::array<Partial, kMaxDatagrams> partials_{};
    std::uint64_t repeats_ = 0;
};

/// Datagrams that one frame may hold (UDP_MAX_SEGMENTS of Linux).
inline constexpr std::size_t kMaxMerged = 128;

/// The size of the datagrams that a payload is made of, where the capturing host merged several of one
/// flow into a frame (generic receive offload): all have this size but the last, which may be shorter.
/// Nothing: it is one datagram, or its content does not show for sure where the parts begin.
///
/// Each part has to be a packet of chunks of one connection, complete up to its last byte.
/// Source:  Linux udp_gro_receive_segment.
[[nodiscard]] std::optional<std::size_t> find_merged_size(std::span<const std::byte> payload,
                                                          wire::PacketScratch& scratch);

struct LinkForm;

/// Takes UDP datagrams out of the frames of one link, of a file or live: Ethernet with or without
/// VLAN tags, loopback, raw IP and Linux's cooked links; IPv4 and IPv6; fragments reassembled.
class FrameReader {
  public:
    /// `link`: as libpcap numbers them. Precondition: knows(link).
    explicit FrameReader(int link);

    [[nodiscard]] static bool knows(int link);
    /// "link type X is not supported (…)"
    [[nodiscard]] static std::string unknown_link(int link);

    /// Nanoseconds since 1970, whatever a damaged file claims: what inspection can count with.
    [[nodiscard]] static std::int64_t time_of(std::int64_t seconds, std::int64_t nanoseconds);

    /// Fills in all but the time, which has to be there. The payload is valid until the next call or
    /// the end of the frame, whichever comes first. False: it was no datagram, or not yet a whole one,
    /// or so little of it was recorded that its ends are unknown.
    /// `sent`: the frame's size before the recorder cut it.
    [[nodiscard]] bool read(std::span<const std::byte> frame, std::size_t sent,
                            CapturedDatagram& datagram);

    /// Hands out the next datagram of the frame read last, where the capturing host merged several into
    /// it (merged.h). To be asked until there is none, before the next frame is read.
    [[nodiscard]] bool next_merged(CapturedDatagram& datagram);

    [[nodiscard]] const CaptureCounts& counts() const { return counts_; }

  private:
    [[nodiscard]] bool parse_link(std::span<const std::byte> frame, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ip(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ipv4(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ipv6(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ipv6_fragment(std::span<const std::byte> packet,
                                           CapturedDatagram& datagram);
    [[nodiscard]] bool parse_udp(std::span<const std::byte> segment, CapturedDatagram& datagram);
    [[nodiscard]] bool put_together(const Fragment& fragment, CapturedDatagram& datagram);
    void split(std::span<const std::byte> segment, CapturedDatagram& datagram);
    [[nodiscard]] bool is_other();
    [[nodiscard]] bool is_cut();
    [[nodiscard]] bool ends_early();

    const LinkForm* form_;
    Fragments fragments_;
    wire::PacketScratch scratch_;
    CapturedDatagram merged_;     ///< what is left of a frame that holds several datagrams
    std::size_t merged_size_ = 0; ///< of each of them
    bool sees_checksums_ = false; ///< some datagram had one
    bool short_ = false;          ///< the frame at hand was cut by the recorder
    CaptureCounts counts_;
};

} // namespace tw::capture
