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
    token,   ///< vanilla 0.6.5: reads a token after the header
    ignored, ///< ignores the bit
    refused, ///< drops the packet
};

/// Which packets a client or server program rejects. Contains only rules in which programs differ
/// and which an observer needs.
struct ReceiverRules {
    std::string_view program;
    bool refuses_compressed_control = false;
    /// The program drops a control packet whose header announces chunks. If false, the program
    /// reads such chunks, starting at the byte of the control kind.
    bool refuses_control_with_chunks = false;
    TokenBit token_bit = TokenBit::refused;
    /// On a 0.6 connection, the program accepts a control packet with a 0.7 header and reads its
    /// token at the position of a 0.6 token.
    bool reads_seven_header = false;
};

/// What is known about the program that receives a packet.
struct Receiver {
    bool header_token = false; ///< the connection uses 0.6.5's token
    bool vanilla = false;      ///< not DDNet
    /// DDNet version (major * 1000 + minor * 10 + patch) that the client announced or the server's
    /// traffic shows.
    std::optional<std::int32_t> version{};
    bool server = false;
};

/// The rules of a receiver. An unknown program is treated as today's DDNet, which rejects the most
/// kinds of packets; honest peers send none of these. A server's program is unknown while its first
/// client joins.
[[nodiscard]] const ReceiverRules& receiver_rules(const Receiver& receiver);

/// Largest chunk count of a packet header.
inline constexpr std::size_t kMaxChunks = 255;
using ChunkBuffer = std::array<wire::Chunk, kMaxChunks>;

/// The chunks of one packet. `chunks` points into the `room` given to the constructor, all other
/// spans into the packet.
struct PacketChunks {
    /// `with_token`: the payload ends with DDNet's token, which receivers cut off before they read
    /// chunks.
    PacketChunks(const wire::Packet& packet, bool with_token, ChunkBuffer& room);

    std::span<const wire::Chunk> chunks{};
    std::span<const std::byte> rest{};      ///< bytes after the chunks: empty, or a token
    std::optional<wire::WireError> error{}; ///< set if the last chunk is truncated
};

/// Why a receiver drops a packet. `none`: the receiver accepts it.
enum class Refusal : std::uint8_t {
    none,
    wrong_token,
    ack_window, ///< acknowledges chunks that were not sent, or fewer chunks than before
    compressed_control,
    control_with_chunks,
    header_token_bit, ///< 0.6.5's token bit on a connection without such a token
    closed,           ///< the connection was closed
    not_established,  ///< no connection was established yet
    other_protocol,   ///< a 0.7 packet on a 0.6 connection
    ack_unseen,       ///< acknowledges chunks that may have been sent, but were not seen here
    count,
};

/// Decides which packets and chunks of a session their receivers accept, by handshake, token,
/// acknowledgement and vital sequence. Rejected packets have no effect on the session's state; they
/// are counted and reported.
///
/// A packet is rejected only with evidence: the packets that its receiver sent, and the
/// connection's token. The relay sees all packets. A capture or a tap may lack datagrams, or all of
/// one direction. A packet is undecided if the evidence about it may be missing; its chunks are not
/// read.
///
/// Checks are done in DDNet's order: form of the packet, token, acknowledgement, then vital order
/// of the chunks.
class PacketAcceptance {
  public:
    /// Datagrams that were in flight when a connection was closed arrive within this time (ns).
    static constexpr record::Timestamp kLinger = 5'000'000'000;
    /// If one side is silent for kUnheard (ns) while the other side sends kUnheardDatagrams, the
    /// capture no longer records that side: each peer sends at least once a second.
    static constexpr record::Timestamp kUnheard = 10'000'000'000;
    static constexpr int kUnheardDatagrams = 100;

    /// `sees_all`: no datagram can be missing. `server`: state shared by the server's sessions;
    /// must outlive this object.
    PacketAcceptance(bool sees_all, SharedServer& server) : sees_all_{sees_all}, shared_{&server} {}

    /// To be called for each datagram of the session: notes that its sender is recorded.
    void note_sender(record::Timestamp time, wire::Direction direction);

    /// Whether a datagram of this direction was ever seen; always true if none can be missing.
    [[nodiscard]] bool was_ever_seen(wire::Direction direction) const {
        return sees_all_ || sides_[wire::index_of(direction)].ever;
    }

    /// To be called for each datagram: forgets a connection that was closed longer than kLinger
    /// ago.
    void begin(record::Timestamp time) {
        if (connection_.closed() && time - closed_at_ > kLinger) {
            connection_.forget();
        }
    }

    /// Forgets the closed connection: no datagram belongs to it any more.
    void forget() { connection_.forget(); }

    /// Whether the receiver accepts a control packet. A rejected one is reported.
    [[nodiscard]] bool accept_control(const wire::Packet& packet, const wire::Control& control,
                                      Reporter& reporter);
    /// Whether the receiver reads the chunks of an accepted control packet.
    [[nodiscard]] bool takes_chunks_of_control(const wire::Packet& packet,
                                               const PacketChunks& chunks,
                                               const Reporter& reporter);
    /// Decodes a datagram with a 0.7 header that the receiver reads as a control packet of its 0.6
    /// connection. nullopt for all other datagrams.
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
    /// Handles a datagram that is no 0.6 packet: it may show a running 0.7 connection.
    [[nodiscard]] ConnectionChange on_misfit(std::span<const std::byte> datagram,
                                             wire::PacketScratch& scratch,
                                             const Reporter& reporter);

    /// To be called if only the client was recorded: checks whether its packets alone show a
    /// running connection.
    [[nodiscard]] ConnectionChange infer_from_client();

    /// The connection has ended: a peer closed it, or it timed out.
    void close(record::Timestamp time);

    /// The client announced its DDNet version (client_version).
    void on_client_version(std::int32_t version) { client_version_ = version; }

    /// What is known about the server's program. The caller passes the server's messages to it.
    [[nodiscard]] ServerProgram& server() { return server_; }

    /// Handles a packet of chunks and returns how it changes the connection.
    [[nodiscard]] ConnectionChange on_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                             const Reporter& reporter);
    /// Whether the receiver accepts the packet's chunks. Counts and reports a rejected packet.
    [[nodiscard]] bool accept(const wire::Packet& packet, const PacketChunks& chunks,
                              Reporter& reporter);

    /// Whether the chunks are a DDNet server's anti-spoof prelude: packets that a client without
    /// token support must answer before it joins.
    [[nodiscard]] bool is_prelude(const PacketChunks& chunks, Reporter& reporter);

    /// Whether the client acknowledged, since the last call, vital chunks that were not seen here.
    [[nodiscard]] bool missed_chunks() { return std::exchange(missed_chunks_, false); }

    /// Counts and classifies a chunk of an accepted packet. The receiver processes it if the result
    /// is `next`.
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

    /// A new connection begins: each reason for a refusal is reported again.
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

    /// Takes the client's version from another observer's checkpoint, if the checkpoint has it.
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
    [[nodiscard]] Refusal refusal(const wire::Packet& packet, const wire::Control& control,
                                  wire::Direction direction);
    [[nodiscard]] Refusal refusal(const wire::Packet& packet, const PacketChunks& chunks,
                                  wire::Direction direction);
    [[nodiscard]] Refusal refusal_of_seven(const wire::Packet& packet, const wire::Control& control,
                                           wire::Direction direction);
    /// Whether the packet carries the connection's token.
    [[nodiscard]] bool token_fits(const wire::Packet& packet, std::span<const std::byte> rest,
                                  wire::Direction direction);
    [[nodiscard]] ConnectionChange begin_seven(SevenChange change);
    [[nodiscard]] const ReceiverRules& rules(wire::Direction direction) const;
    [[nodiscard]] wire::HeaderTokenBit disputed_token_bit(wire::Direction direction) const;
    /// Why an established connection rejects this control packet, by token, then by
    /// acknowledgement.
    [[nodiscard]] Refusal refusal_in_connection(const wire::Packet& packet,
                                                wire::Direction direction);
    /// Why the receiver rejects this acknowledgement; `none` if it accepts the acknowledgement.
    [[nodiscard]] Refusal take_ack(wire::Direction direction, std::uint16_t ack);
    /// Whether the receiver of this direction's packets is recorded, so that all chunks it sent are
    /// known.
    [[nodiscard]] bool knows_receiver(wire::Direction direction) const;
    /// Whether the evidence for this refusal may be missing from the capture.
    [[nodiscard]] bool is_undecided(Refusal refusal, wire::Direction direction) const;
    void report(Refusal refusal, Reporter& reporter);
    /// Counts the refusal; emits a finding for the first one with this reason.
    void report_once(record::FindingId id, Refusal refusal, Reporter& reporter);

    [[nodiscard]] wire::VitalClass take_vital(const wire::Chunk& chunk, Reporter& reporter);

    /// When one side of the session sent its last datagram.
    struct SideActivity {
        bool ever = false;
        record::Timestamp last = 0;
        int answers = 0; ///< datagrams of the other side since `last`
    };

    bool sees_all_;
    SharedServer* shared_;
    bool had_connection_ = false;
    std::array<SideActivity, 2> sides_; ///< by direction
    Connection connection_;
    SevenHandshake seven_;
    record::Timestamp closed_at_ = 0;
    bool missed_chunks_ = false;
    std::optional<std::int32_t> client_version_;
    ServerProgram server_;
    /// Refusals reported in this connection.
    std::bitset<static_cast<std::size_t>(Refusal::count)> reported_;
};

/// Whether bytes that could not be decoded must be hidden. They may contain a password or a
/// whisper, so they are secret if there are more than `harmless` bytes.
[[nodiscard]] wire::Secrecy secrecy_of_undecoded(std::span<const std::byte> bytes,
                                                 std::size_t harmless);

} // namespace tw::inspect
