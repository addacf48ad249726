#pragma once

#include "proxy/inspect/connection/connection.h"
#include "proxy/inspect/connection/server_program.h"
#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/server_silence.h"
#include "proxy/wire/packet.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace tw::inspect {

/// How a receiver treats a packet with bit 0x08 in its header.
enum class TokenBit : std::uint8_t {
    token,   ///< the receiver reads a token after the header (vanilla 0.6.5)
    ignored, ///< the receiver ignores the bit
    refused, ///< the receiver drops the packet
};

/// Which packets a client or server program rejects. Only rules in which programs differ are listed here.
struct ReceiverRules {
    std::string_view program;
    bool refuses_compressed_control = false;
    /// The program drops a control packet whose header announces chunks. If false, it reads these chunks;
    /// the first one begins at the byte of the control kind.
    bool refuses_control_with_chunks = false;
    TokenBit token_bit = TokenBit::refused;
    /// On a 0.6 connection, the program accepts a control packet with a 0.7 header. It then reads the token
    /// where a 0.6 packet has it.
    bool reads_seven_header = false;
};

/// What is known about the program that receives a packet.
struct ReceiverProgram {
    bool header_token = false; ///< the connection uses 0.6.5's token
    bool vanilla = false;      ///< the program is vanilla, not DDNet
    /// DDNet version (major * 1000 + minor * 10 + patch) that the client announced or the server's
    /// traffic shows.
    std::optional<std::int32_t> version{};
    bool server = false;
};

/// Returns the rules of a receiver. An unknown program is treated as today's DDNet, which rejects the most
/// kinds of packets. Honest peers send none of these. While its first client joins, a server's program
/// is unknown.
[[nodiscard]] const ReceiverRules& receiver_rules(const ReceiverProgram& receiver);

/// The largest number of chunks that a packet header can announce.
inline constexpr std::size_t kMaxChunks = 255;
using ChunkBuffer = std::array<wire::Chunk, kMaxChunks>;

/// The chunks of one packet. `chunks` points into the `room` given to the constructor, all other
/// spans into the packet.
struct PacketChunks {
    /// `with_token`: the payload ends with DDNet's token, which receivers cut off before they read
    /// chunks.
    PacketChunks(const wire::Packet& packet, bool with_token, ChunkBuffer& room);

    std::span<const wire::Chunk> chunks{};
    std::span<const std::byte> rest{};      ///< the bytes after the chunks: none, or a token
    std::optional<wire::WireError> error{}; ///< set if the last chunk is truncated
};

/// Why a receiver drops a packet. `none`: the receiver accepts it.
enum class PacketRefusal : std::uint8_t {
    none,
    wrong_token,
    ack_window, ///< the packet acknowledges chunks that were not sent, or fewer chunks than before
    compressed_control,
    control_with_chunks,
    header_token_bit, ///< 0.6.5's token bit is set, but the connection has no such token
    closed,           ///< the connection was closed
    not_established,  ///< no connection was established yet
    other_protocol,   ///< a 0.7 packet on a 0.6 connection
    ack_unseen,       ///< the packet acknowledges chunks that were perhaps sent, but not seen here
    count,
};

/// Decides which packets and chunks of a session their receivers accept, by handshake, token,
/// acknowledgement and vital sequence. Rejected packets do not change the session's state. They are
/// counted and reported.
///
/// A packet is rejected only with evidence: the packets that its receiver sent, and the connection's token.
/// The relay sees all packets. In a capture or a tap, single datagrams, or all of one direction, may be
/// missing. If the evidence about a packet may be missing, the packet is undecided, and its chunks are
/// not read.
///
/// Checks are done in DDNet's order: form of the packet, token, acknowledgement, then vital order
/// of the chunks.
class PacketAcceptance {
  public:
    /// Datagrams that are in flight when a connection is closed arrive within this time (ns).
    static constexpr record::Timestamp kInFlightTime = 5'000'000'000;
    /// If one side is silent for kMaxSilence (ns) while the other side sends kMaxUnanswered, the silent side
    /// is not recorded any more, because each peer sends something at least once a second.
    static constexpr record::Timestamp kMaxSilence = 10'000'000'000;
    static constexpr int kMaxUnanswered = 100;

    /// `sees_all`: whether no datagram can be missing. `server`: the server's activity; must outlive this
    /// object.
    PacketAcceptance(bool sees_all, ServerActivity& server)
        : sees_all_{sees_all}, shared_{&server} {}

    /// Must be called for each datagram of the session. Notes that the datagram's sender is recorded.
    void note_sender(record::Timestamp time, wire::Direction direction);

    /// Whether a datagram of this direction was ever seen; always true if no datagram can be missing.
    [[nodiscard]] bool was_ever_seen(wire::Direction direction) const {
        return sees_all_ || sides_[wire::index_of(direction)].ever;
    }

    /// Must be called for each datagram. Forgets a connection that was closed more than kInFlightTime ago.
    void begin(record::Timestamp time) {
        if (connection_.closed() && time - closed_at_ > kInFlightTime) {
            connection_.forget();
        }
    }

    /// Forgets the closed connection. No further datagram belongs to it.
    void forget() { connection_.forget(); }

    /// Returns whether the receiver accepts a control packet. Reports a rejected packet.
    [[nodiscard]] bool accept_control(const wire::Packet& packet, const wire::Control& control,
                                      Reporter& reporter);
    /// Whether the receiver reads the chunks of an accepted control packet.
    [[nodiscard]] bool takes_chunks_of_control(const wire::Packet& packet,
                                               const PacketChunks& chunks,
                                               const Reporter& reporter);
    /// The receiver of a 0.6 connection may read a datagram that has a 0.7 header as a 0.6 control packet.
    /// Returns that packet; nullopt if the receiver does not read the datagram so.
    [[nodiscard]] std::optional<wire::Packet>
    find_control_under_seven(std::span<const std::byte> datagram, const Reporter& reporter);

    /// How the receiver reads the header bit that 0.6 programs interpret differently.
    [[nodiscard]] wire::HeaderTokenBit token_bit(std::span<const std::byte> datagram,
                                                 wire::Direction direction) const {
        return wire::has_disputed_bits(datagram) ? disputed_token_bit(direction)
                                                 : wire::HeaderTokenBit::read;
    }

    /// Handles an accepted control packet and returns how it changes the connection.
    [[nodiscard]] ConnectionChange on_control(const wire::Packet& packet,
                                              const wire::Control& control, Reporter& reporter);
    /// Whether this CLOSE ends the current connection or an attempt to connect.
    [[nodiscard]] bool closes(const wire::Packet& packet, const Reporter& reporter) const;
    /// Handles a datagram that is not a 0.6 packet. It may show a running 0.7 connection.
    [[nodiscard]] ConnectionChange on_misfit(std::span<const std::byte> datagram,
                                             wire::PacketScratch& scratch,
                                             const Reporter& reporter);

    /// For recordings of the client's packets only: tells whether these packets show a running connection.
    [[nodiscard]] ConnectionChange infer_from_client();

    /// The connection has ended: a peer closed it, or it timed out.
    void close(record::Timestamp time);

    /// The client announced its DDNet version (client_version).
    void on_client_version(std::int32_t version) { client_version_ = version; }

    /// What is known about the server's program. The caller must pass the server's messages to it.
    [[nodiscard]] ServerProgram& server() { return server_; }

    /// Handles a packet of chunks and returns how it changes the connection.
    [[nodiscard]] ConnectionChange on_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                             const Reporter& reporter);
    /// Returns whether the receiver accepts the packet's chunks. Counts and reports a rejected packet.
    [[nodiscard]] bool accept(const wire::Packet& packet, const PacketChunks& chunks,
                              Reporter& reporter);

    /// Whether the chunks are a server's anti-spoof prelude, which a client without token support must answer
    /// before it can join.
    [[nodiscard]] bool is_prelude(const PacketChunks& chunks, Reporter& reporter);

    /// Whether the client acknowledged, since the last call, vital chunks that were not seen here.
    [[nodiscard]] bool missed_chunks() { return std::exchange(missed_chunks_, false); }

    /// Counts and classifies a chunk of an accepted packet. If the result is `next`, the receiver processes
    /// the chunk.
    [[nodiscard]] wire::VitalClass take(const wire::Chunk& chunk, Reporter& reporter) {
        record::DirectionStats& stats = reporter.direction_stats();
        ++stats.chunks;
        if (chunk.resend) {
            ++stats.resent;
        }
        return chunk.vital ? take_vital(chunk, reporter) : wire::VitalClass::next;
    }

    /// Copies of datagrams were lost: sequence numbers may have advanced unseen.
    void resynchronise() { connection_.resynchronise(); }

    /// A new connection begins, in which each reason for a refusal is reported again.
    void restart();

    [[nodiscard]] const Connection& connection() const { return connection_; }

    /// The protocol's name in records; empty if unknown. "0.7+ddnet": a DDNet server translates its
    /// 0.6 game for this 0.7 client.
    [[nodiscard]] std::string_view protocol_name() const;

    /// Saves what another observer needs to continue the connection.
    void save(SessionCheckpoint& checkpoint) const {
        checkpoint.form = connection_.form();
        checkpoint.token = connection_.token();
        checkpoint.translated = is_translated();
    }

    /// Continues a running connection from another observer's checkpoint.
    /// Precondition: checkpoint.form is not unknown.
    [[nodiscard]] ConnectionChange take_up(const SessionCheckpoint& checkpoint) {
        if (checkpoint.form != TokenForm::seven) {
            return connection_.take_up(checkpoint.form, checkpoint.token);
        }
        seven_.take_up(checkpoint.translated);
        return begin_seven(SevenChange::midway);
    }

    /// Continues with the client's version in another observer's checkpoint, if it contains one.
    void restore(const SessionCheckpoint& checkpoint) {
        if (checkpoint.client_version) {
            client_version_ = checkpoint.client_version;
        }
    }

    /// Whether this is a 0.7 connection to a DDNet server, which translates its 0.6 game.
    [[nodiscard]] bool is_translated() const;

    [[nodiscard]] bool with_token() const { return connection_.form() == TokenForm::ddnet; }

  private:
    /// Why the receiver drops a control packet or a packet of chunks; `none` if it accepts the
    /// packet.
    [[nodiscard]] PacketRefusal refusal(const wire::Packet& packet, const wire::Control& control,
                                        wire::Direction direction);
    [[nodiscard]] PacketRefusal refusal(const wire::Packet& packet, const PacketChunks& chunks,
                                        wire::Direction direction);
    [[nodiscard]] PacketRefusal refusal_of_seven(const wire::Packet& packet,
                                                 const wire::Control& control,
                                                 wire::Direction direction);
    /// Whether the packet carries the connection's token.
    [[nodiscard]] bool token_fits(const wire::Packet& packet, std::span<const std::byte> rest,
                                  wire::Direction direction);
    [[nodiscard]] ConnectionChange begin_seven(SevenChange change);
    [[nodiscard]] const ReceiverRules& rules(wire::Direction direction) const;
    [[nodiscard]] wire::HeaderTokenBit disputed_token_bit(wire::Direction direction) const;
    /// Why an established connection rejects this control packet: first by its token, then by its
    /// acknowledgement.
    [[nodiscard]] PacketRefusal refusal_in_connection(const wire::Packet& packet,
                                                      wire::Direction direction);
    /// Why the receiver rejects this acknowledgement; `none` if it accepts it.
    [[nodiscard]] PacketRefusal take_ack(wire::Direction direction, std::uint16_t ack);
    /// Whether the receiver of this direction's packets is recorded, so that all chunks that it sent are
    /// known.
    [[nodiscard]] bool knows_receiver(wire::Direction direction) const;
    /// Whether the evidence about this refusal may be missing, because not all datagrams were recorded.
    [[nodiscard]] bool is_undecided(PacketRefusal refusal, wire::Direction direction) const;
    void report(PacketRefusal refusal, Reporter& reporter);
    /// Counts the refusal. Emits a finding only for the first one with this reason.
    void report_once(record::FindingId id, PacketRefusal refusal, Reporter& reporter);

    [[nodiscard]] wire::VitalClass take_vital(const wire::Chunk& chunk, Reporter& reporter);

    /// When one side of the session sent its last datagram.
    struct SideActivity {
        bool ever = false;          ///< the side has sent a datagram
        record::Timestamp last = 0; ///< time of the side's last datagram
        int answers = 0;            ///< datagrams of the other side since `last`
    };

    bool sees_all_;
    ServerActivity* shared_;
    bool had_connection_ = false;
    std::array<SideActivity, 2> sides_; ///< by the direction of the side's datagrams
    Connection connection_;
    SevenHandshake seven_;
    record::Timestamp closed_at_ = 0;
    bool missed_chunks_ = false;
    std::optional<std::int32_t> client_version_;
    ServerProgram server_;
    /// The refusals that were reported in this connection.
    std::bitset<static_cast<std::size_t>(PacketRefusal::count)> reported_;
};

/// Whether bytes that could not be decoded must be hidden. More than `harmless` bytes are secret, because
/// they may contain a password or a whisper.
[[nodiscard]] wire::Secrecy secrecy_of_undecoded(std::span<const std::byte> bytes,
                                                 std::size_t harmless);

} // namespace tw::inspect
