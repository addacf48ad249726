#pragma once

#include "proxy/record/records.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::sink {

/// An address and port as packets have them.
struct FrameEndpoint {
    bool is_v6 = false;
    std::array<std::uint8_t, 16> address{}; ///< of IPv4 the first four
    std::uint16_t port = 0;
};

/// Reads "127.0.0.1:8303" and "[::1]:8303".
[[nodiscard]] std::optional<FrameEndpoint> parse_endpoint(std::string_view text);

/// Where one of two is of IPv6, both are: no packet has one of each.
void make_same_family(FrameEndpoint& one, FrameEndpoint& other);

/// Most bytes of a datagram that a frame holds.
inline constexpr std::size_t kMaxFramePayload = 65'507;

/// Replaces `out` by the Ethernet frame that a datagram would be. Between an address of IPv4 and one
/// of IPv6 it is one of IPv6. (Of raw IP, which needs no Ethernet, libpcap reads no capture with two
/// interfaces.)
/// Precondition: `payload` has at most kMaxFramePayload bytes.
void make_udp_frame(const FrameEndpoint& from, const FrameEndpoint& to,
                    std::span<const std::byte> payload, std::vector<std::byte>& out);

/// Link types of captures (tcpdump.org/linktypes.html).
inline constexpr std::uint16_t kLinkEthernet = 1;

/// Type of the block that begins a section, and the file; the same in either order of bytes.
inline constexpr std::uint32_t kPcapngSection = 0x0a0d0d0a;
/// What stands in it to tell the order of bytes.
inline constexpr std::uint32_t kPcapngByteOrder = 0x1a2b3c4d;

/// Where packets of a capture passed.
struct PcapngInterface {
    std::string_view name{}; ///< empty: none
    std::string_view description{};
    std::uint16_t link = kLinkEthernet;
    std::uint8_t resolution = 9; ///< of times: so many digits of a second
};

struct PcapngPacket {
    enum class Direction : std::uint8_t { unknown, inbound, outbound };

    std::uint32_t interface = 0; ///< in the order in which they were described
    std::uint64_t time = 0;      ///< since 1970, in the interface's resolution
    std::span<const std::byte> frame{};
    Direction direction = Direction::unknown;
    std::span<const std::string> comments{};
};

/// Makes the blocks of a pcapng file, to be appended in order: a section, its interfaces, packets.
/// Sections may follow each other; each begins its interfaces anew.
/// Source: draft-ietf-opsawg-pcapng.
class PcapngEncoder {
  public:
    using Bytes = std::vector<std::byte>;

    /// The type of a packet's block.
    static constexpr std::uint32_t kPacketBlock = 6;
    /// Longer comments are cut.
    static constexpr std::size_t kMaxComment = 1024;

    explicit PcapngEncoder(bool big_endian = false) : big_endian_{big_endian} {}

    /// `program`: who writes it; `comment`: what is to be said about all of it; empty: not said.
    void section(std::string_view program, Bytes& out, std::string_view comment = {}) const;
    void interface(const PcapngInterface& interface, Bytes& out) const;
    void packet(const PcapngPacket& packet, Bytes& out) const;
    /// Totals of an interface, of which none are given: a place for what belongs to no packet.
    void statistics(std::uint32_t interface, std::uint64_t time,
                    std::span<const std::string> comments, Bytes& out) const;

    /// Of a type that is not among those above.
    void block(std::uint32_t type, std::span<const std::byte> body, Bytes& out) const;

  private:
    void put16(std::uint32_t value, Bytes& out) const;
    void put32(std::uint32_t value, Bytes& out) const;
    void put_option(std::uint16_t code, std::span<const std::byte> value, Bytes& out) const;
    void put_option(std::uint16_t code, std::string_view text, Bytes& out) const;
    [[nodiscard]] std::size_t begin(std::uint32_t type, Bytes& out) const;
    void end(std::size_t begin, Bytes& out) const;

    bool big_endian_;
};

/// What a block begins with; nothing for what is none, in this machine's byte order.
struct PcapngBlock {
    std::uint32_t type = 0;
    std::uint32_t size = 0; ///< of all of it

    static constexpr std::size_t kHead = 8;

    [[nodiscard]] static std::optional<PcapngBlock> read(std::string_view head);
};

/// Goes from block to block, as far as they are whole.
class BlockWalk {
  public:
    explicit BlockWalk(std::string_view text) : text_{text} {}

    /// The next one, which it goes behind.
    [[nodiscard]] std::optional<PcapngBlock> next();

    /// Bytes that it has gone over.
    [[nodiscard]] std::size_t at() const { return at_; }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

/// What a capture says of a session right before a packet of it, so that it can be read from there on:
/// no traffic, but a block of its own, which programs that do not know it skip (CAPTURES.md).
struct SessionState {
    FrameEndpoint client; ///< as the packet behind it has them
    FrameEndpoint server;
    std::span<const std::byte>
        bytes{}; ///< of the inspector (inspect/connection/session_checkpoint.h)
};

/// Of the types that are left for local use.
inline constexpr std::uint32_t kStateBlock = 0x80745753;

/// The most bytes of one; libpcap reads no blocks of more than 16 MiB, whatever is in them.
inline constexpr std::size_t kMaxStateBytes = std::size_t{4} << 20U;

/// How much of a capture may be states: in the long run a fourth of what is traffic, however short its
/// segments are, and however many sessions they have.
class StateAllowance {
  public:
    /// States of some 200 sessions with 64 players, made in less than a tenth of a second.
    static constexpr std::int64_t kAtOnce = std::int64_t{8} << 20U;
    static constexpr std::int64_t kTraffic = 4; ///< bytes of it for one of a state

    /// Whether there may be another one.
    [[nodiscard]] bool any() const { return left_ > 0; }

    void spend(std::size_t state) { left_ -= kTraffic * static_cast<std::int64_t>(state); }

    void earn(std::size_t datagram) {
        left_ = std::min(left_ + static_cast<std::int64_t>(datagram), kMost);
    }

  private:
    static constexpr std::int64_t kMost = kTraffic * kAtOnce;

    std::int64_t left_ = kMost; ///< bytes of traffic
};

/// Asked when a datagram of a session begins: what is known of it; empty: nothing.
using StateSource = std::function<std::vector<std::byte>()>;

/// Appends the block; nothing where there is too much in it.
void put_session_state(const SessionState& state, std::vector<std::byte>& out);

/// Reads what stands in the block between its lengths; nothing for what is of another version, or cut.
[[nodiscard]] std::optional<SessionState> read_session_state(std::span<const std::byte> body);

/// Of the first interface of every capture; whoever reads one knows ours by it.
inline constexpr std::string_view kClientsDescription = "between clients and twscope";

/// Makes the blocks of a capture: each datagram once, on the leg it came in by and between the
/// addresses of client and server; what was found in it stands in its comment. To be told of every
/// record, and of every datagram before it is looked at and after that.
class CaptureBlocks {
  public:
    using Bytes = std::vector<std::byte>;

    /// What a capture begins with. `comment`: about all of it; empty: none.
    [[nodiscard]] static Bytes head(std::string_view comment = {});

    void on_record(const record::Record& record);

    /// Where the state of the session comes from whose datagram is handed over; it stands before the
    /// first one of each session, and again after `every` nanoseconds; 0: never. Where that would be
    /// too much beside the traffic, it stands before a later one.
    void repeat_states(StateSource states, record::Timestamp every = 0);

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram);

    /// Stands with the datagram at hand, or the next one.
    void say(std::string text) { say(0, std::move(text), false); }

    /// What was said since the last datagram stands with the next one of its own session.
    void put_aside();
    /// The datagram at hand is not written: what was found in it is forgotten, what became of its
    /// session stands with that session's next one.
    void skip_datagram();

    /// Each session is described once more, with its next datagram and its state: a new file begins.
    void introduce_again() { ++introduction_; }

    /// Appends the datagram's block. False: it is too long for one.
    [[nodiscard]] bool end_datagram(Bytes& out);
    /// Appends what was said since the last datagram, if anything was.
    void finish(record::Timestamp time, Bytes& out);

    /// Of the datagram at hand.
    [[nodiscard]] const record::RecordHead& at() const { return head_; }

    /// What is known of a session: "session 3: 127.0.0.1:50000 to 127.0.0.1:8303"; empty: nothing.
    [[nodiscard]] std::string describe(std::uint32_t session) const;

  private:
    /// Of those before, the oldest are forgotten, those that are closed first: what they still send
    /// gets an address for tests.
    static constexpr std::size_t kMaxSessions = 65'536;
    /// More would be said of no honest packet.
    static constexpr std::size_t kMaxComments = 16;
    /// A session that is established, closed, and found silent in between.
    static constexpr std::size_t kMaxAside = 4;

    struct Ends {
        FrameEndpoint client;
        FrameEndpoint server;
        std::string told;                          ///< of its beginning
        std::uint32_t opened = 0;                  ///< in which introduction
        std::optional<std::uint32_t> introduced{}; ///< in which one last
        std::vector<std::string> aside{};          ///< stands with its next datagram
        std::optional<std::uint32_t> stated{};     ///< in which one its state was written last
        record::Timestamp stated_at = 0;
    };

    struct Comment {
        std::uint32_t session = 0; ///< 0: of none
        bool of_session = false;   ///< not of one datagram of it
        std::string text{};
    };

    void take(const record::SessionRecord& record);
    void take(const record::FindingRecord& record);
    void forget_one_too_many();
    void say(std::uint32_t session, std::string text, bool of_session);
    /// What stands with a datagram of this session; null: of an unknown one.
    [[nodiscard]] std::vector<std::string> take_comments(Ends* ends);
    [[nodiscard]] bool wants_state(const Ends& ends) const;
    void put_state(Bytes& out) const;

    PcapngEncoder encoder_;
    StateSource states_;
    record::Timestamp states_every_ = 0;
    StateAllowance states_left_;
    std::map<std::uint32_t, Ends> sessions_;
    std::set<std::uint32_t> closed_;      ///< of these
    std::uint32_t introduction_ = 0;      ///< which one is due
    record::RecordHead head_;             ///< of the datagram at hand
    std::span<const std::byte> datagram_; ///< valid until its end
    Ends* ends_ = nullptr;                ///< its session's; null: nothing is known
    Bytes state_;                         ///< stands before it; empty: none does
    std::vector<Comment> comments_;       ///< of the datagram at hand, or the next one
    std::uint64_t unsaid_ = 0;            ///< comments beyond kMaxComments
    Bytes frame_;                         ///< kept for its memory
};

/// How many bytes of a pcapng file are whole blocks; behind them is what was never finished. 0 for
/// what cannot be read, and for no such file.
[[nodiscard]] std::uint64_t whole_capture_bytes(int descriptor);

} // namespace tw::sink
