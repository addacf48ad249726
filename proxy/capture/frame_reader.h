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

/// An address and port in a capture.
struct CaptureEndpoint {
    boost::asio::ip::address address;
    std::uint16_t port = 0;

    friend bool operator==(const CaptureEndpoint&, const CaptureEndpoint&) = default;

    friend bool operator<(const CaptureEndpoint& left, const CaptureEndpoint& right) {
        return std::tie(left.address, left.port) < std::tie(right.address, right.port);
    }
};

/// Returns "127.0.0.1:8303" or "[::1]:8303".
[[nodiscard]] std::string to_string(const CaptureEndpoint& endpoint);

/// The state of a session that a capture contains (sink/pcapng.h).
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
    std::span<const std::byte> next{}; ///< payload of the next datagram, if known
    /// State of the datagram's session before the datagram; null if the capture has none.
    const CapturedState* state = nullptr;
    bool cut = false; ///< truncated by the recorder: there is no payload
};

/// Counts of a capture's frames.
struct CaptureCounts {
    std::uint64_t frames = 0;
    std::uint64_t datagrams = 0;
    std::uint64_t other = 0;       ///< not UDP over IPv4 or IPv6
    std::uint64_t reassembled = 0; ///< datagrams that came in fragments
    /// Frames with fragments of reassembled datagrams, except the last of each.
    std::uint64_t pieces = 0;
    std::uint64_t repeats = 0;   ///< IP fragments that were captured twice
    std::uint64_t merged = 0;    ///< frames with several merged datagrams, which were split again
    std::uint64_t fragments = 0; ///< IP fragments of incomplete datagrams
    std::uint64_t cut = 0;       ///< datagrams, or unknown frames, that the recorder truncated
    bool ended_early = false;    ///< the file ends within a frame
};

/// A file is no capture or cannot be opened. The message says which file and why.
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
    std::size_t offset = 0; ///< position of its bytes in the datagram
    bool more = false;      ///< more fragments follow
    std::span<const std::byte> bytes{};
};

/// Reassembles IP fragments in any order, as a receiving host does.
///
/// Memory is bounded: by the number of datagrams at a time (the oldest is replaced), by time, and
/// by the number of fragments of each. Complete datagrams are remembered if there is room, because
/// a datagram captured in two places comes twice.
/// Source: RFC 791, RFC 8200 section 4.5; RFC 5722: overlapping fragments invalidate the datagram.
class Fragments {
  public:
    static constexpr std::size_t kMaxDatagrams = 64;
    /// The most fragments of a datagram; more than 64 KiB in IPv6's smallest fragments need.
    static constexpr std::size_t kMaxPieces = 64;
    /// Nanoseconds to wait for missing fragments, as Linux does (ipfrag_time).
    static constexpr std::int64_t kPatience = 30'000'000'000;
    /// The most bytes of a datagram: a UDP length has 16 bits.
    static constexpr std::size_t kMaxBytes = 65535;

    /// A reassembled datagram.
    struct Whole {
        std::span<const std::byte> bytes; ///< valid until the next call
        std::size_t pieces = 0;           ///< number of its fragments
    };

    /// Adds a fragment. Returns the datagram if it is complete now.
    [[nodiscard]] std::optional<Whole> add(const Fragment& fragment);

    /// Fragments that were captured twice.
    [[nodiscard]] std::uint64_t repeats() const { return repeats_; }

  private:
    struct Piece {
        std::size_t begin;
        std::size_t end;
    };

    struct Partial {
        bool used = false;
        bool spoiled = false; ///< invalid: further fragments are dropped until its time is over
        bool whole = false;   ///< complete; kept to recognise repeats
        boost::asio::ip::address source{};
        boost::asio::ip::address destination{};
        std::uint32_t id = 0;
        std::int64_t began = 0;
        std::optional<std::size_t> size{}; ///< known once the last fragment came
        std::size_t have = 0;              ///< bytes received
        std::size_t num_pieces = 0;        ///< fragments in `pieces`
        std::array<Piece, kMaxPieces> pieces{};
        std::vector<std::byte> bytes{}; ///< kept to reuse its memory
    };

    /// How a fragment relates to those received before: new, repeated, or contradicting.
    enum class Fit : std::uint8_t { fits, again, spoils };

    [[nodiscard]] Partial& place_of(const Fragment& fragment);
    static void begin(Partial& partial, const Fragment& fragment);
    [[nodiscard]] static bool is_of_whole(const Partial& partial, const Fragment& fragment);
    [[nodiscard]] static Fit fit_of(const Partial& partial, const Fragment& fragment);

    std::array<Partial, kMaxDatagrams> partials_{};
    std::uint64_t repeats_ = 0;
};

/// The most datagrams in one frame (UDP_MAX_SEGMENTS of Linux).
inline constexpr std::size_t kMaxMerged = 128;

/// Returns the size of the datagrams in a payload if the capturing host merged several of one flow
/// into a frame (generic receive offload). All have this size except the last, which may be
/// shorter. Returns nullopt for a single datagram, or if the parts cannot be determined with
/// certainty.
///
/// Each part has to be a packet with chunks of one connection, complete to its last byte.
/// Source: Linux udp_gro_receive_segment.
[[nodiscard]] std::optional<std::size_t> find_merged_size(std::span<const std::byte> payload,
                                                          wire::PacketScratch& scratch);

struct LinkForm;

/// Extracts UDP datagrams from the frames of one link, from a file or live: Ethernet with or
/// without VLAN tags, loopback, raw IP and Linux's cooked links; IPv4 and IPv6; reassembles
/// fragments.
class FrameReader {
  public:
    /// `link`: libpcap's number of the link type.
    /// Precondition: knows(link).
    explicit FrameReader(int link);

    [[nodiscard]] static bool knows(int link);
    /// Returns "link type X is not supported (…)".
    [[nodiscard]] static std::string unknown_link(int link);

    /// Returns nanoseconds since 1970, limited to a range that inspection can handle, as damaged
    /// files may contain any value.
    [[nodiscard]] static std::int64_t time_of(std::int64_t seconds, std::int64_t nanoseconds);

    /// Reads a frame into `datagram`, whose time has to be set already. The payload is valid until
    /// the next call or the end of the frame, whichever comes first. Returns false if the frame
    /// completes no datagram, or so little of it was recorded that its endpoints are unknown.
    /// `sent`: the frame's size before the recorder truncated it.
    [[nodiscard]] bool read(std::span<const std::byte> frame, std::size_t sent,
                            CapturedDatagram& datagram);

    /// Returns the next datagram of the last frame, if the capturing host merged several into it
    /// (see find_merged_size). Call this until it returns false before reading the next frame.
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
    CapturedDatagram merged_;     ///< the rest of a frame with several datagrams
    std::size_t merged_size_ = 0; ///< size of each of these datagrams
    bool sees_checksums_ = false; ///< a datagram with a checksum was seen
    bool short_ = false;          ///< the recorder truncated the current frame
    CaptureCounts counts_;
};

} // namespace tw::capture
