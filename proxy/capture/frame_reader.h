#pragma once

#include "proxy/capture/captured.h"
#include "proxy/capture/fragments.h"
#include "proxy/wire/packet_scratch.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tw::capture {

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
