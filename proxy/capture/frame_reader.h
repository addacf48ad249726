#pragma once

#include "proxy/capture/pcapng.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

namespace tw::capture {

/// A UDP datagram in a capture.
struct CapturedDatagram {
    std::int64_t time = 0; ///< nanoseconds since 1970-01-01 UTC
    /// Number of the datagram's frame in the capture, from 1, as in Wireshark.
    std::uint64_t frame = 0;
    CaptureEndpoint source;
    CaptureEndpoint destination;
    std::span<const std::byte> payload;
    std::span<const std::byte> next{}; ///< payload of the next datagram; empty if unknown
    /// State of the datagram's session, stored directly before the datagram; null if no state is
    /// stored there.
    const StoredSessionState* state = nullptr;
    bool is_truncated = false; ///< true if the recorder truncated it; the payload is then empty
};

/// Counts of the frames and datagrams in a capture.
struct CaptureCounts {
    std::uint64_t frames = 0;
    std::uint64_t datagrams = 0;
    std::uint64_t other_frames = 0; ///< number of frames that are not UDP over IPv4 or IPv6
    /// Number of IP fragments of reassembled datagrams, without the last fragment of each datagram.
    std::uint64_t extra_fragments = 0;
    std::uint64_t repeated_fragments = 0; ///< number of IP fragments that were captured twice
    /// Number of frames into which the host had merged several datagrams. The datagrams were
    /// separated again.
    std::uint64_t merged_frames = 0;
    /// Number of IP fragments of datagrams that remained incomplete.
    std::uint64_t incomplete_fragments = 0;
    /// Number of datagrams, and frames of unknown content, that the recorder truncated.
    std::uint64_t truncated = 0;
    bool ended_early = false; ///< the file ends within a frame
};

/// Thrown if a file is not a capture or cannot be opened. The message names the file and the
/// reason.
class CaptureError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A fragment of an IP datagram.
struct Fragment {
    std::int64_t time = 0; ///< when it was captured, in nanoseconds since 1970-01-01 UTC
    boost::asio::ip::address source{};
    boost::asio::ip::address destination{};
    std::uint32_t id = 0;
    std::size_t offset = 0; ///< position of the fragment's bytes in the datagram
    bool more = false;      ///< further fragments of the datagram follow
    std::span<const std::byte> bytes{};
};

/// Reassembles IP fragments that arrive in any order, as a receiving host does.
///
/// Limits the number of incomplete datagrams, their age, and the fragments of each datagram. A new
/// datagram replaces the oldest one. Complete datagrams are remembered as long as possible, because
/// a datagram that was captured at two interfaces appears twice.
/// Source: RFC 791, RFC 8200 section 4.5; RFC 5722: overlapping fragments invalidate the datagram.
class FragmentReassembly {
  public:
    static constexpr std::size_t kMaxDatagrams = 64;
    /// The maximum number of fragments of a datagram. Even 64 KiB in IPv6's smallest fragments need
    /// fewer.
    static constexpr std::size_t kMaxFragments = 64;
    /// Time in nanoseconds to wait for missing fragments, as in Linux (ipfrag_time).
    static constexpr std::int64_t kTimeoutNs = 30'000'000'000;
    /// The maximum number of bytes of a datagram, because a UDP length has 16 bits.
    static constexpr std::size_t kMaxBytes = 65535;

    struct ReassembledDatagram {
        std::span<const std::byte> bytes; ///< valid until the next call
        std::size_t num_fragments = 0;    ///< number of fragments that it arrived in
    };

    /// Adds a fragment. Returns the datagram to which the fragment belongs if it is now complete.
    [[nodiscard]] std::optional<ReassembledDatagram> add_fragment(const Fragment& fragment);

    [[nodiscard]] std::uint64_t num_repeated_fragments() const { return repeats_; }

  private:
    struct FragmentRange {
        std::size_t begin;
        std::size_t end;
    };

    struct PartialDatagram {
        bool is_used = false;
        /// The fragments contradict each other; further fragments are dropped until kTimeoutNs has
        /// passed.
        bool is_invalid = false;
        /// The datagram is complete; its entry is kept to recognise repeated fragments.
        bool is_complete = false;
        boost::asio::ip::address source{};
        boost::asio::ip::address destination{};
        std::uint32_t id = 0;
        std::int64_t first_time = 0;
        /// Size of the datagram in bytes; nullopt until its last fragment has arrived.
        std::optional<std::size_t> size{};
        std::size_t bytes_received = 0;
        std::size_t num_fragments = 0; ///< number of fragments in `fragments`
        std::array<FragmentRange, kMaxFragments> fragments{};
        /// The datagram's bytes. The next datagram in this entry reuses the memory.
        std::vector<std::byte> bytes{};
    };

    /// The relation of a fragment to the earlier fragments of its datagram.
    enum class FragmentRelation : std::uint8_t { is_new, repeats, contradicts };

    [[nodiscard]] PartialDatagram& find_or_replace_entry(const Fragment& fragment);
    static void begin_datagram(PartialDatagram& partial, const Fragment& fragment);
    [[nodiscard]] static bool repeats_complete_datagram(const PartialDatagram& partial,
                                                        const Fragment& fragment);
    [[nodiscard]] static FragmentRelation compare_fragment(const PartialDatagram& partial,
                                                           const Fragment& fragment);

    std::array<PartialDatagram, kMaxDatagrams> partials_{};
    std::uint64_t repeats_ = 0;
};

/// The maximum number of datagrams in one frame (UDP_MAX_SEGMENTS of Linux).
inline constexpr std::size_t kMaxCoalescedDatagrams = 128;

/// Returns the size of each datagram that the capturing host merged into a frame (generic receive
/// offload); the last datagram may be shorter. Returns nullopt for a single datagram, or if the
/// boundaries are uncertain.
[[nodiscard]] std::optional<std::size_t>
find_coalesced_datagram_size(std::span<const std::byte> payload, wire::PacketScratch& scratch);

struct LinkLayout;

/// Extracts UDP datagrams from recorded or live frames. Reads Ethernet with or without VLAN tags,
/// loopback, raw IP, Linux's cooked links, IPv4 and IPv6. Reassembles IP fragments.
class FrameReader {
  public:
    /// Sets the link type of the next frames. Frames of a link type that is not supported count as
    /// other traffic. `link`: libpcap's number of the link type.
    void set_link_type(int link);

    [[nodiscard]] static bool supports_link_type(int link);
    /// Returns an error text: "link type X is not supported (…)".
    [[nodiscard]] static std::string describe_unsupported_link(int link);

    /// Returns the time in nanoseconds since 1970, limited to a range that inspection can handle.
    /// Damaged files may contain any value.
    [[nodiscard]] static std::int64_t clamped_time(std::int64_t seconds, std::int64_t nanoseconds);

    /// Reads the UDP datagram in a frame. Returns false if the frame completes no datagram. `sent`:
    /// size of the frame on the wire. `datagram.time` must already be set. The payload is valid
    /// until the next call, as long as `frame` exists.
    [[nodiscard]] bool read_frame(std::span<const std::byte> frame, std::size_t sent,
                                  CapturedDatagram& datagram);

    /// Reads the next datagram of the current frame if the host merged several datagrams into the
    /// frame (see find_coalesced_datagram_size). Returns false if no datagram is left. Call this
    /// function until it returns false, before reading the next frame.
    [[nodiscard]] bool read_next_coalesced_datagram(CapturedDatagram& datagram);

    [[nodiscard]] const CaptureCounts& counts() const { return counts_; }

  private:
    [[nodiscard]] bool parse_link_layer(std::span<const std::byte> frame,
                                        CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ip(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ipv4(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ipv6(std::span<const std::byte> packet, CapturedDatagram& datagram);
    [[nodiscard]] bool parse_ipv6_fragment(std::span<const std::byte> packet,
                                           CapturedDatagram& datagram);
    [[nodiscard]] bool parse_udp(std::span<const std::byte> segment, CapturedDatagram& datagram);
    [[nodiscard]] bool reassemble_datagram(const Fragment& fragment, CapturedDatagram& datagram);
    void pass_on_coalesced_datagrams(std::span<const std::byte> segment,
                                     CapturedDatagram& datagram);
    [[nodiscard]] bool count_non_udp_frame();
    [[nodiscard]] bool count_truncated_frame();
    [[nodiscard]] bool count_incomplete_frame();

    const LinkLayout* link_layout_ = nullptr; ///< null if the link type is not supported
    FragmentReassembly fragments_;
    wire::PacketScratch scratch_;
    CapturedDatagram
        coalesced_; ///< the remaining datagrams of the current frame, not yet separated
    std::size_t coalesced_size_ = 0; ///< size of each datagram in coalesced_
    /// True if a UDP segment had a checksum. All segments without one then count as not merged.
    bool sees_checksums_ = false;
    bool is_frame_truncated_ = false; ///< the recorder truncated the current frame
    CaptureCounts counts_;
};

} // namespace tw::capture
