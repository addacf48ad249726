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

/// An address and port in the form that packets contain.
struct FrameEndpoint {
    bool is_v6 = false;
    std::array<std::uint8_t, 16> address{}; ///< an IPv4 address uses the first four bytes
    std::uint16_t port = 0;
};

/// Parses an endpoint such as "127.0.0.1:8303" or "[::1]:8303".
[[nodiscard]] std::optional<FrameEndpoint> parse_endpoint(std::string_view text);

/// If one of the addresses is IPv6, converts the other one to IPv6: a packet cannot have one of each.
void make_same_family(FrameEndpoint& one, FrameEndpoint& other);

/// The most bytes of a datagram that a frame can hold.
inline constexpr std::size_t kMaxFramePayload = 65'507;

/// Replaces `out` by an Ethernet frame with a datagram. The frame is IPv6 if one of the addresses is.
/// (Frames of raw IP would be shorter, but libpcap cannot read such a capture with two interfaces.)
/// Precondition: `payload` has at most kMaxFramePayload bytes.
void make_udp_frame(const FrameEndpoint& from, const FrameEndpoint& to,
                    std::span<const std::byte> payload, std::vector<std::byte>& out);

/// Link types of captures (tcpdump.org/linktypes.html).
inline constexpr std::uint16_t kLinkEthernet = 1;

/// The type of the block that starts a section and the file. It is the same in both byte orders.
inline constexpr std::uint32_t kPcapngSection = 0x0a0d0d0a;
/// The mark in a section's block that shows the byte order.
inline constexpr std::uint32_t kPcapngByteOrder = 0x1a2b3c4d;

/// An interface of a capture.
struct PcapngInterface {
    std::string_view name{}; ///< empty if it has no name
    std::string_view description{};
    std::uint16_t link = kLinkEthernet;
    std::uint8_t resolution = 9; ///< number of decimal digits of a second in timestamps
};

struct PcapngPacket {
    enum class Direction : std::uint8_t { unknown, inbound, outbound };

    /// Index of the interface, in the order in which interfaces were described.
    std::uint32_t interface = 0;
    std::uint64_t time = 0; ///< time since 1970-01-01 UTC, in the interface's resolution
    std::span<const std::byte> frame{};
    Direction direction = Direction::unknown;
    std::span<const std::string> comments{};
};

/// Encodes the blocks of a pcapng file, to be appended in this order: a section, its interfaces, packets.
/// Further sections may follow; each one numbers its own interfaces from 0.
/// Source: draft-ietf-opsawg-pcapng.
class PcapngEncoder {
  public:
    using Bytes = std::vector<std::byte>;

    /// The type of a packet's block.
    static constexpr std::uint32_t kPacketBlock = 6;
    /// The most bytes of a comment; a longer one is truncated.
    static constexpr std::size_t kMaxComment = 1024;

    explicit PcapngEncoder(bool big_endian = false) : big_endian_{big_endian} {}

    /// `program`: the name of the writing program. `comment`: a comment on the whole section. Both may
    /// be empty.
    void section(std::string_view program, Bytes& out, std::string_view comment = {}) const;
    void interface(const PcapngInterface& interface, Bytes& out) const;
    void packet(const PcapngPacket& packet, Bytes& out) const;
    /// Appends an interface statistics block without statistics. It holds comments that belong to no
    /// packet.
    void statistics(std::uint32_t interface, std::uint64_t time,
                    std::span<const std::string> comments, Bytes& out) const;

    /// Appends a block of any other type.
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

/// The first fields of a block, if it has this machine's byte order.
struct PcapngBlock {
    std::uint32_t type = 0;
    std::uint32_t size = 0; ///< size of the whole block in bytes

    static constexpr std::size_t kHead = 8;

    [[nodiscard]] static std::optional<PcapngBlock> read(std::string_view head);
};

/// Iterates over the whole blocks of a text.
class BlockWalk {
  public:
    explicit BlockWalk(std::string_view text) : text_{text} {}

    /// Returns the next block and moves past it; nullopt if no whole block is left.
    [[nodiscard]] std::optional<PcapngBlock> next();

    /// The number of bytes in the blocks that next() returned.
    [[nodiscard]] std::size_t at() const { return at_; }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

/// The state of a session in a capture. It is written before one of the session's packets, so that the
/// capture can be decoded from there on. It has its own type of block, which other programs skip
/// (CAPTURES.md).
struct SessionState {
    FrameEndpoint client; ///< both addresses are as in the packet that follows
    FrameEndpoint server;
    std::span<const std::byte>
        bytes{}; ///< the inspector's state (inspect/connection/session_checkpoint.h)
};

/// The block type of a session state. It is from the range for local use.
inline constexpr std::uint32_t kStateBlock = 0x80745753;

/// The most bytes of a session state, because libpcap rejects blocks of more than 16 MiB.
inline constexpr std::size_t kMaxStateBytes = std::size_t{4} << 20U;

/// Limits the session states in a capture to a quarter of the traffic in the long run, however long the
/// segments and however many sessions there are.
class StateAllowance {
  public:
    /// The most bytes of states at once. It suffices for about 200 sessions with 64 players, which are
    /// encoded in less than 0.1 s.
    static constexpr std::int64_t kAtOnce = std::int64_t{8} << 20U;
    static constexpr std::int64_t kTraffic = 4; ///< bytes of traffic that permit one byte of states

    /// True if another state may be written now.
    [[nodiscard]] bool any() const { return left_ > 0; }

    void spend(std::size_t state) { left_ -= kTraffic * static_cast<std::int64_t>(state); }

    void earn(std::size_t datagram) {
        left_ = std::min(left_ + static_cast<std::int64_t>(datagram), kMost);
    }

  private:
    static constexpr std::int64_t kMost = kTraffic * kAtOnce;

    std::int64_t left_ = kMost; ///< traffic in bytes that was not used for states yet
};

/// Returns the state of the current datagram's session before that datagram; empty if it is unknown.
using StateSource = std::function<std::vector<std::byte>()>;

/// Appends a block with the state. Appends nothing if the state is too large.
void put_session_state(const SessionState& state, std::vector<std::byte>& out);

/// Parses the body of a state block; nullopt if it has another version or is truncated.
[[nodiscard]] std::optional<SessionState> read_session_state(std::span<const std::byte> body);

/// The description of the first interface in every capture. It identifies captures that twscope wrote.
inline constexpr std::string_view kClientsDescription = "between clients and twscope";

/// Encodes the blocks of a capture. Each datagram is written once, as received, with the addresses of
/// client and server. Findings about it become its comments. Call on_datagram() before inspection,
/// on_record() for every record, and end_datagram() after inspection.
class CaptureBlocks {
  public:
    using Bytes = std::vector<std::byte>;

    /// Returns the start of a capture. `comment`: a comment on the whole capture; may be empty.
    [[nodiscard]] static Bytes head(std::string_view comment = {});

    void on_record(const record::Record& record);

    /// Sets the source of session states. A state is written before the first datagram of each session,
    /// and again after `every` nanoseconds; 0 means never again. If states would take too large a part
    /// of the capture, a state waits for a later datagram.
    void repeat_states(StateSource states, record::Timestamp every = 0);

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram);

    /// Adds a comment to the current datagram, or to the next one.
    void say(std::string text) { say(0, std::move(text), false); }

    /// Moves the comments made since the last datagram to the next datagram of the same session.
    void keep_for_next_datagram();
    /// Skips the current datagram. Findings about it are discarded; comments about its session move
    /// to the session's next datagram.
    void skip_datagram();

    /// Starts a new file. Each session is described again, with its next datagram and its state.
    void introduce_again() { ++introduction_; }

    /// Appends the datagram's block. Returns false if the datagram is too long for a block.
    [[nodiscard]] bool end_datagram(Bytes& out);
    /// Appends the comments made since the last datagram, if there are any.
    void finish(record::Timestamp time, Bytes& out);

    /// The record head of the current datagram.
    [[nodiscard]] const record::RecordHead& at() const { return head_; }

    /// Describes a session as "session 3: 127.0.0.1:50000 to 127.0.0.1:8303"; empty if unknown.
    [[nodiscard]] std::string describe(std::uint32_t session) const;

  private:
    /// The limit of sessions. If it is exceeded, the oldest sessions are forgotten, closed ones first.
    /// Their later datagrams get an address from a range for tests.
    static constexpr std::size_t kMaxSessions = 65'536;
    /// The most comments of one packet.
    static constexpr std::size_t kMaxComments = 16;
    /// The most comments that wait for a session's next datagram: established, closed, and a silence in
    /// between, with some reserve.
    static constexpr std::size_t kMaxAside = 4;

    struct Ends {
        FrameEndpoint client;
        FrameEndpoint server;
        std::string told;         ///< comment about the beginning of the session
        std::uint32_t opened = 0; ///< value of introduction_ when the session opened
        /// Value of introduction_ when the session was last described.
        std::optional<std::uint32_t> introduced{};
        std::vector<std::string> aside{}; ///< comments for the session's next datagram
        /// Value of introduction_ when the session's state was last written.
        std::optional<std::uint32_t> stated{};
        record::Timestamp stated_at = 0;
    };

    struct Comment {
        std::uint32_t session = 0; ///< 0 for no session
        bool of_session = false;   ///< about the session, not about one datagram
        std::string text{};
    };

    void take(const record::SessionRecord& record);
    void take(const record::FindingRecord& record);
    void forget_one_too_many();
    void say(std::uint32_t session, std::string text, bool of_session);
    /// Returns the comments for a datagram of this session; `ends` is null for an unknown session.
    [[nodiscard]] std::vector<std::string> take_comments(Ends* ends);
    [[nodiscard]] bool wants_state(const Ends& ends) const;
    void put_state(Bytes& out) const;

    PcapngEncoder encoder_;
    StateSource states_;
    record::Timestamp states_every_ = 0;
    StateAllowance states_left_;
    std::map<std::uint32_t, Ends> sessions_;
    std::set<std::uint32_t> closed_;      ///< numbers of closed sessions in `sessions_`
    std::uint32_t introduction_ = 0;      ///< incremented for each new file
    record::RecordHead head_;             ///< head of the current datagram
    std::span<const std::byte> datagram_; ///< valid until end_datagram()
    Ends* ends_ = nullptr;                ///< the current session; null if unknown
    Bytes state_; ///< the state to write before the current datagram; empty if there is none
    std::vector<Comment> comments_; ///< comments for the current datagram, or for the next one
    std::uint64_t unsaid_ = 0;      ///< number of comments left out because of kMaxComments
    Bytes frame_;                   ///< kept to reuse its memory
};

/// Returns the size of the whole blocks in a pcapng file; 0 if the file cannot be read or is not pcapng.
[[nodiscard]] std::uint64_t whole_capture_bytes(int descriptor);

} // namespace tw::sink
