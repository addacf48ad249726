#pragma once

#include "proxy/record/records.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>

namespace tw::capture {

/// The address and UDP port of the sender or receiver of a datagram.
struct CaptureEndpoint {
    boost::asio::ip::address address;
    std::uint16_t port = 0;

    friend bool operator==(const CaptureEndpoint&, const CaptureEndpoint&) = default;

    friend bool operator<(const CaptureEndpoint& left, const CaptureEndpoint& right) {
        return std::tie(left.address, left.port) < std::tie(right.address, right.port);
    }
};

/// Returns the endpoint as "127.0.0.1:8303" or "[::1]:8303".
[[nodiscard]] std::string to_string(const CaptureEndpoint& endpoint);
/// Parses an endpoint in the form of to_string(); nullopt if the text is no endpoint.
[[nodiscard]] std::optional<CaptureEndpoint> parse_endpoint(std::string_view text);

/// Returns the address with these bytes in network byte order: IPv4 if there are 4, IPv6 if 16.
[[nodiscard]] boost::asio::ip::address address_from_bytes(std::span<const std::byte> bytes);

/// Converts an IPv4 endpoint to IPv6 if the other endpoint is IPv6, because both addresses of a
/// packet must have the same family.
void convert_to_same_family(CaptureEndpoint& one, CaptureEndpoint& other);

/// Returns the checksum of a UDP segment, which consists of the UDP header and the payload. Returns
/// 0 if the segment contains its correct checksum.
[[nodiscard]] std::uint16_t udp_checksum(const CaptureEndpoint& from, const CaptureEndpoint& to,
                                         std::span<const std::byte> segment);

/// The longest datagram in a frame, in bytes.
inline constexpr std::size_t kMaxFramePayload = 65'507;

/// Replaces `out` by an Ethernet frame that contains a datagram. The frame is IPv6 if one of the
/// endpoints is IPv6. (Frames of raw IP would be shorter, but libpcap cannot read such a capture
/// with two interfaces.) Precondition: `payload` has at most kMaxFramePayload bytes.
void make_udp_frame(const CaptureEndpoint& from, const CaptureEndpoint& to,
                    std::span<const std::byte> payload, std::vector<std::byte>& out);

/// The link type of Ethernet in captures (tcpdump.org/linktypes.html).
inline constexpr std::uint16_t kLinkTypeEthernet = 1;
inline constexpr std::uint8_t kIpProtocolUdp = 17; ///< UDP in the header of an IP packet
/// The most bytes of a frame in a capture, as in libpcap. Even merged frames are shorter.
inline constexpr int kSnapLength = 262144;

/// The type of the block that starts a section. Its bytes are the same in both byte orders.
inline constexpr std::uint32_t kPcapngSectionBlock = 0x0a0d0d0a;
// The types of the other blocks. Simple packets have neither a time nor an interface.
inline constexpr std::uint32_t kPcapngInterfaceBlock = 1;
inline constexpr std::uint32_t kPcapngOldPacketBlock = 2;
inline constexpr std::uint32_t kPcapngSimplePacketBlock = 3;
inline constexpr std::uint32_t kPcapngStatisticsBlock = 5;
inline constexpr std::uint32_t kPcapngPacketBlock = 6;
/// The number in a section's first block from which a reader detects the byte order.
inline constexpr std::uint32_t kPcapngByteOrderMagic = 0x1a2b3c4d;

/// The content of a block that describes an interface.
struct PcapngInterface {
    std::string_view name{}; ///< empty if the interface has no name
    std::string_view description{};
    std::uint16_t link = kLinkTypeEthernet;
    std::uint8_t resolution = 9; ///< decimal digits of a second in timestamps; 9: nanoseconds
};

/// The content of a block with a captured packet.
struct PcapngPacket {
    enum class Direction : std::uint8_t { unknown, inbound, outbound };

    /// The index of the packet's interface in its section.
    std::uint32_t interface = 0;
    std::uint64_t time = 0; ///< time since 1970-01-01 UTC, in the interface's resolution
    std::span<const std::byte> frame{};
    Direction direction = Direction::unknown;
    std::span<const std::string> comments{};
};

/// Encodes the blocks of a pcapng file, which must be appended in this order: a section, its
/// interfaces, packets. Further sections may follow; in each section, interfaces are numbered from
/// 0. Source: draft-ietf-opsawg-pcapng.
class PcapngEncoder {
  public:
    using Bytes = std::vector<std::byte>;

    /// The most bytes of a comment. A longer comment is truncated.
    static constexpr std::size_t kMaxCommentBytes = 1024;

    explicit PcapngEncoder(bool big_endian = false) : big_endian_{big_endian} {}

    /// Appends the block that starts a section. `program`: the name of the writing program.
    /// `comment`: a comment on the section. Both texts may be empty.
    void append_section(std::string_view program, Bytes& out, std::string_view comment = {}) const;
    void append_interface(const PcapngInterface& interface, Bytes& out) const;
    void append_packet(const PcapngPacket& packet, Bytes& out) const;
    /// Appends an interface statistics block with comments that belong to no packet.
    void append_statistics(std::uint32_t interface, std::uint64_t time,
                           std::span<const std::string> comments, Bytes& out) const;

    void append_block(std::uint32_t type, std::span<const std::byte> body, Bytes& out) const;

  private:
    void put16(std::uint32_t value, Bytes& out) const;
    void put32(std::uint32_t value, Bytes& out) const;
    void put_option(std::uint16_t code, std::span<const std::byte> value, Bytes& out) const;
    void put_option(std::uint16_t code, std::string_view text, Bytes& out) const;
    [[nodiscard]] std::size_t begin_block(std::uint32_t type, Bytes& out) const;
    void end_block(std::size_t begin, Bytes& out) const;

    bool big_endian_;
};

/// The first fields of a block in this machine's byte order.
struct PcapngBlock {
    std::uint32_t type = 0;
    std::uint32_t size = 0; ///< size of the block in bytes

    static constexpr std::size_t kHeaderBytes = 8;

    [[nodiscard]] static std::optional<PcapngBlock> read(std::string_view head);
};

/// Iterates over the complete pcapng blocks in a range of bytes.
class BlockIterator {
  public:
    explicit BlockIterator(std::string_view text) : text_{text} {}

    /// Returns the next block; nullopt if no complete block is left.
    [[nodiscard]] std::optional<PcapngBlock> next();

    /// Returns the number of bytes in the blocks that next() has returned.
    [[nodiscard]] std::size_t bytes_of_returned_blocks() const { return at_; }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

/// The state of a session in a capture. It is written before a packet of the session, so that the
/// session can be decoded from this packet on. Other programs skip the state's block (CAPTURES.md).
struct StoredSessionState {
    CaptureEndpoint client; ///< the client's endpoint, as in the packet after the state
    CaptureEndpoint server;
    std::vector<std::byte> bytes; ///< the state, encoded by inspect::encode_checkpoint()
};

/// The block type of session states, from the range for local use.
inline constexpr std::uint32_t kSessionStateBlock = 0x80745753;

/// The most bytes of a session state, because libpcap rejects blocks of more than 16 MiB.
inline constexpr std::size_t kMaxStateBytes = std::size_t{4} << 20U;

/// Limits the size of the session states in a capture, to a quarter of the traffic in the long run.
class SessionStateBudget {
  public:
    /// The most bytes of session states that are encoded at the same time: about 200 sessions with
    /// 64 players each, which takes less than 0.1 s.
    static constexpr std::int64_t kMaxStateBytesAtOnce = std::int64_t{8} << 20U;
    static constexpr std::int64_t kTrafficBytesPerStateByte = 4;

    /// Returns whether another state may be written now.
    [[nodiscard]] bool has_bytes_left() const { return left_ > 0; }

    void spend_state_bytes(std::size_t state) {
        left_ -= kTrafficBytesPerStateByte * static_cast<std::int64_t>(state);
    }

    void add_datagram_bytes(std::size_t datagram) {
        left_ = std::min(left_ + static_cast<std::int64_t>(datagram), kMaxTrafficBytes);
    }

  private:
    static constexpr std::int64_t kMaxTrafficBytes =
        kTrafficBytesPerStateByte * kMaxStateBytesAtOnce;

    std::int64_t left_ = kMaxTrafficBytes; ///< in bytes of traffic
};

/// A function that returns the state that the current datagram's session had before the datagram;
/// empty if unknown.
using SessionStateSource = std::function<std::vector<std::byte>()>;

/// Appends a block with a session state to `out`. Appends nothing if the state is too large.
void append_session_state(const StoredSessionState& state, std::vector<std::byte>& out);

/// Parses the body of a state block; nullopt if it has another version or is truncated.
[[nodiscard]] std::optional<StoredSessionState> read_session_state(std::span<const std::byte> body);

/// The description of the first interface in captures. It identifies captures by twscope.
inline constexpr std::string_view kClientInterfaceDescription = "between clients and twscope";

/// Encodes the blocks of a capture. Each datagram is written once, as received, with the addresses
/// of client and server. Findings about a datagram become its comments. The caller must call
/// on_datagram() before inspection, on_record() for every record, and end_datagram() after
/// inspection.
class CaptureEncoder {
  public:
    using Bytes = std::vector<std::byte>;

    /// Returns the start of a capture. `comment`: a comment on the capture; may be empty.
    [[nodiscard]] static Bytes encode_start(std::string_view comment = {});

    void on_record(const record::Record& record);

    /// Sets the source of session states. A state is written before the first datagram of each
    /// session, and again every `every` nanoseconds; 0: not again. If states would take too large a
    /// part of the capture, a state is written before a later datagram instead.
    void set_session_state_source(SessionStateSource states, record::Timestamp every = 0);

    void on_datagram(const record::RecordHeader& head, std::span<const std::byte> datagram);

    /// Adds a comment to the current datagram; to the next datagram if no datagram is current.
    void add_comment(std::string text) { add_comment(0, std::move(text), false); }

    /// Moves the comments made since the latest datagram to the next datagram of their sessions.
    void defer_comments_to_next_datagram();
    /// Skips the current datagram. Findings about the datagram are discarded; comments about its
    /// session move to the session's next datagram.
    void skip_datagram();

    /// Must be called when a new file starts. The first datagram of each session in the file gets a
    /// description of the session, and the session's state is written before it.
    void on_new_file() { ++file_number_; }

    /// Appends the current datagram's blocks to `out`. Returns false if the datagram is too long.
    [[nodiscard]] bool end_datagram(Bytes& out);
    /// Appends the comments made since the latest datagram to `out`, if such comments exist.
    void append_remaining_comments(record::Timestamp time, Bytes& out);

    [[nodiscard]] const record::RecordHeader& current_head() const { return head_; }

    /// Returns "session 3: 127.0.0.1:50000 to 127.0.0.1:8303"; empty for an unknown session.
    [[nodiscard]] std::string describe_session(std::uint32_t session) const;

  private:
    /// The most sessions. If more are opened, the oldest sessions are forgotten, closed sessions
    /// first. Later datagrams of a forgotten session get an address from a range for tests.
    static constexpr std::size_t kMaxSessions = 65'536;
    static constexpr std::size_t kMaxComments = 16;
    /// The most comments that wait for a session's next datagram. Usually they say that the session
    /// was established, that the server was silent, and that the session was closed.
    static constexpr std::size_t kMaxDeferredComments = 4;

    struct DescribedSession {
        CaptureEndpoint client;
        CaptureEndpoint server;
        std::string summary; ///< comment with the session's number and addresses
        /// Number of the file that was current when the session opened.
        std::uint32_t opened_in_file = 0;
        /// Number of the file in which the session was most recently described.
        std::optional<std::uint32_t> described_in_file{};
        std::vector<std::string> deferred_comments{}; ///< comments for the session's next datagram
        /// Number of the file in which the session's state was most recently written.
        std::optional<std::uint32_t> state_stored_in_file{};
        record::Timestamp state_time = 0;
    };

    struct Comment {
        std::uint32_t session = 0; ///< number of the session; 0: no session
        /// True if the comment is about the session, not about a datagram.
        bool is_about_session = false;
        std::string text{};
    };

    void handle_record(const record::SessionRecord& record);
    void handle_record(const record::FindingRecord& record);
    void forget_oldest_session();
    void add_comment(std::uint32_t session, std::string text, bool is_about_session);
    /// Removes and returns the comments for the next block. `entry`: the session of the block's
    /// datagram; its deferred comments are included. Null if there is no datagram or its session is
    /// unknown.
    [[nodiscard]] std::vector<std::string> take_comments(DescribedSession* entry);
    [[nodiscard]] bool is_state_due(const DescribedSession& entry) const;

    PcapngEncoder encoder_;
    SessionStateSource state_source_;
    record::Timestamp state_interval_ = 0;
    SessionStateBudget state_budget_;
    std::map<std::uint32_t, DescribedSession> sessions_;
    std::set<std::uint32_t> closed_sessions_; ///< numbers of closed sessions in `sessions_`
    std::uint32_t file_number_ = 0;           ///< number of the current file, from 0 on
    record::RecordHeader head_;               ///< head of the current datagram
    std::span<const std::byte> datagram_;     ///< the current datagram; valid until end_datagram()
    DescribedSession* current_session_ =
        nullptr;  ///< the current datagram's session; null if unknown
    Bytes state_; ///< the state that is written before the current datagram; empty: no state
    std::vector<Comment> comments_; ///< comments for the current datagram, or for the next datagram
    std::uint64_t num_omitted_comments_ = 0; ///< because of kMaxComments
    Bytes frame_; ///< the frame of a datagram; a member to reuse its memory
};

/// Returns how many bytes the complete blocks at the start of a pcapng file have; 0 if the file
/// cannot be read or is not pcapng.
[[nodiscard]] std::uint64_t complete_blocks_size(int descriptor);

} // namespace tw::capture
