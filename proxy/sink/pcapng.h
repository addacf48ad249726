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

/// An address and port as in a packet.
struct FrameEndpoint {
    bool is_v6 = false;
    std::array<std::uint8_t, 16> address{}; ///< for IPv4 the first four bytes
    std::uint16_t port = 0;
};

/// Reads "127.0.0.1:8303" and "[::1]:8303".
[[nodiscard]] std::optional<FrameEndpoint> parse_endpoint(std::string_view text);

/// Turns both addresses into IPv6 if one of them is: a packet cannot have one of each.
void make_same_family(FrameEndpoint& one, FrameEndpoint& other);

/// The most bytes of a datagram that a frame can hold.
inline constexpr std::size_t kMaxFramePayload = 65'507;

/// Replaces `out` by the Ethernet frame of a datagram. The frame is IPv6 if one of the addresses
/// is. (Raw IP would need no Ethernet, but libpcap cannot read such a capture with two interfaces.)
/// Precondition: `payload` has at most kMaxFramePayload bytes.
void make_udp_frame(const FrameEndpoint& from, const FrameEndpoint& to,
                    std::span<const std::byte> payload, std::vector<std::byte>& out);

/// Link types of captures (tcpdump.org/linktypes.html).
inline constexpr std::uint16_t kLinkEthernet = 1;

/// Type of the block that starts a section and the file. It is the same in both byte orders.
inline constexpr std::uint32_t kPcapngSection = 0x0a0d0d0a;
/// The value in the block of a section that shows the file's byte order.
inline constexpr std::uint32_t kPcapngByteOrder = 0x1a2b3c4d;

/// An interface of a capture.
struct PcapngInterface {
    std::string_view name{}; ///< empty if it has no name
    std::string_view description{};
    std::uint16_t link = kLinkEthernet;
    std::uint8_t resolution = 9; ///< decimal digits of a second in timestamps
};

struct PcapngPacket {
    enum class Direction : std::uint8_t { unknown, inbound, outbound };

    std::uint32_t interface = 0; ///< index, in the order of the descriptions
    std::uint64_t time = 0;      ///< since 1970-01-01 UTC, in the interface's resolution
    std::span<const std::byte> frame{};
    Direction direction = Direction::unknown;
    std::span<const std::string> comments{};
};

/// Encodes the blocks of a pcapng file, to append in order: a section, its interfaces, packets.
/// Several sections may follow each other; each numbers its interfaces anew.
/// Source: draft-ietf-opsawg-pcapng.
class PcapngEncoder {
  public:
    using Bytes = std::vector<std::byte>;

    /// Type of the block of a packet.
    static constexpr std::uint32_t kPacketBlock = 6;
    /// Longer comments are cut.
    static constexpr std::size_t kMaxComment = 1024;

    explicit PcapngEncoder(bool big_endian = false) : big_endian_{big_endian} {}

    /// `program`: the writing program; `comment`: a comment on the whole section. Both may be
    /// empty.
    void section(std::string_view program, Bytes& out, std::string_view comment = {}) const;
    void interface(const PcapngInterface& interface, Bytes& out) const;
    void packet(const PcapngPacket& packet, Bytes& out) const;
    /// Appends an interface statistics block without totals; it only carries comments that belong
    /// to no packet.
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

/// The start of a block in this machine's byte order.
struct PcapngBlock {
    std::uint32_t type = 0;
    std::uint32_t size = 0; ///< bytes of the whole block

    static constexpr std::size_t kHead = 8;

    [[nodiscard]] static std::optional<PcapngBlock> read(std::string_view head);
};

/// Iterates over the whole blocks of a text.
class BlockWalk {
  public:
    explicit BlockWalk(std::string_view text) : text_{text} {}

    /// Returns the next block and moves past it; nullopt if no whole block is left.
    [[nodiscard]] std::optional<PcapngBlock> next();

    /// Bytes of the blocks that next() returned.
    [[nodiscard]] std::size_t at() const { return at_; }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

/// The state of a session in a capture, written before one of its packets so that the capture can
/// be read from there on. It is a block of its own type, which other programs skip (CAPTURES.md).
struct SessionState {
    FrameEndpoint client; ///< addresses as in the packet that follows
    FrameEndpoint server;
    std::span<const std::byte>
        bytes{}; ///< the inspector's state (inspect/connection/session_checkpoint.h)
};

/// Block type of a session state; from the range for local use.
inline constexpr std::uint32_t kStateBlock = 0x80745753;

/// The most bytes of a session state. libpcap rejects blocks of more than 16 MiB.
inline constexpr std::size_t kMaxStateBytes = std::size_t{4} << 20U;

/// Limits the session states in a capture: in the long run to a quarter of the traffic, for any
/// length of segment and number of sessions.
class StateAllowance {
  public:
    /// Bytes of states that may come at once: about 200 sessions with 64 players, encoded in less
    /// than 0.1 s.
    static constexpr std::int64_t kAtOnce = std::int64_t{8} << 20U;
    static constexpr std::int64_t kTraffic = 4; ///< bytes of traffic for each byte of a state

    /// True if another state may be written.
    [[nodiscard]] bool any() const { return left_ > 0; }

    void spend(std::size_t state) { left_ -= kTraffic * static_cast<std::int64_t>(state); }

    void earn(std::size_t datagram) {
        left_ = std::min(left_ + static_cast<std::int64_t>(datagram), kMost);
    }

  private:
    static constexpr std::int64_t kMost = kTraffic * kAtOnce;

    std::int64_t left_ = kMost; ///< bytes of traffic
};

/// Returns the state of the current datagram's session before that datagram; empty if unknown.
using StateSource = std::function<std::vector<std::byte>()>;

/// Appends the state's block, or nothing if the state is too large.
void put_session_state(const SessionState& state, std::vector<std::byte>& out);

/// Reads the body of a state block; nullopt for another version or a truncated block.
[[nodiscard]] std::optional<SessionState> read_session_state(std::span<const std::byte> body);

/// Description of the first interface of every capture; identifies captures that twscope wrote.
inline constexpr std::string_view kClientsDescription = "between clients and twscope";

/// Encodes the blocks of a capture. Each datagram is written once, as received, between the
/// addresses of client and server; its comment holds the findings about it. Call on_datagram()
/// before inspection, on_record() for every record, and end_datagram() after it.
class CaptureBlocks {
  public:
    using Bytes = std::vector<std::byte>;

    /// Returns the start of a capture. `comment`: a comment on the whole capture; may be empty.
    [[nodiscard]] static Bytes head(std::string_view comment = {});

    void on_record(const record::Record& record);

    /// Sets the source of session states. A state is written before the first datagram of each
    /// session, and again after `every` nanoseconds; 0: never again. If states would take too much
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

    /// Starts a new file: each session is described again, with its next datagram and its state.
    void introduce_again() { ++introduction_; }

    /// Appends the datagram's block. Returns false if the datagram is too long for a block.
    [[nodiscard]] bool end_datagram(Bytes& out);
    /// Appends the comments made since the last datagram, if there are any.
    void finish(record::Timestamp time, Bytes& out);

    /// The head of the current datagram.
    [[nodiscard]] const record::RecordHead& at() const { return head_; }

    /// Describes a session: "session 3: 127.0.0.1:50000 to 127.0.0.1:8303"; empty if unknown.
    [[nodiscard]] std::string describe(std::uint32_t session) const;

  private:
    /// Beyond this number the oldest sessions are forgotten, closed ones first. Their later
    /// datagrams get an address from a range for tests.
    static constexpr std::size_t kMaxSessions = 65'536;
    /// The most comments of one packet.
    static constexpr std::size_t kMaxComments = 16;
    /// The most comments that wait for a session's next datagram: established, closed, and silent
    /// in between.
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
    /// Returns the comments for a datagram of this session; null for an unknown session.
    [[nodiscard]] std::vector<std::string> take_comments(Ends* ends);
    [[nodiscard]] bool wants_state(const Ends& ends) const;
    void put_state(Bytes& out) const;

    PcapngEncoder encoder_;
    StateSource states_;
    record::Timestamp states_every_ = 0;
    StateAllowance states_left_;
    std::map<std::uint32_t, Ends> sessions_;
    std::set<std::uint32_t> closed_;      ///< numbers of closed sessions in `sessions_`
    std::uint32_t introduction_ = 0;      ///< incremented with each new file
    record::RecordHead head_;             ///< head of the current datagram
    std::span<const std::byte> datagram_; ///< valid until end_datagram()
    Ends* ends_ = nullptr;                ///< the current session; null if unknown
    Bytes state_;                   ///< state to write before the current datagram; may be empty
    std::vector<Comment> comments_; ///< for the current datagram or the next one
    std::uint64_t unsaid_ = 0;      ///< comments beyond kMaxComments
    Bytes frame_;                   ///< kept to reuse its memory
};

/// Returns the length of the whole blocks of a pcapng file. Returns 0 for a file that cannot be
/// read or is not pcapng.
[[nodiscard]] std::uint64_t whole_capture_bytes(int descriptor);

} // namespace tw::sink
