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

/// How a receiver treats the header's bit 0x08.
enum class TokenBit : std::uint8_t {
    token,   ///< 0.6.5: a token follows the header
    ignored, ///< the bit is ignored
    refused,
};

/// How programs differ in the packets they reject; only differences that matter to an observer.
struct ReceiverRules {
    std::string_view program;
    bool refuses_compressed_control = false;
    /// If false, the program reads the chunks, starting at the byte of the control kind.
    bool refuses_control_with_chunks = false;
    TokenBit token_bit = TokenBit::refused;
    /// Accepts a control packet with a 0.7 header on a 0.6 connection, and looks for its token
    /// where 0.6 has it.
    bool reads_seven_header = false;
};

/// What is known about the receiving program.
struct Receiver {
    bool header_token = false; ///< the connection uses 0.6.5's token
    bool vanilla = false;      ///< not DDNet
    /// DDNet version (major * 1000 + minor * 10 + patch) that the client announced or the server's
    /// traffic shows.
    std::optional<std::int32_t> version{};
    bool server = false;
};

/// The rules of a receiver. An unknown program is treated as today's DDNet: it rejects most, and no
/// honest peer sends what it rejects. A server is unknown while its first client joins.
[[nodiscard]] const ReceiverRules& receiver_rules(const Receiver& receiver);

/// Largest chunk count of a packet header.
inline constexpr std::size_t kMaxChunks = 255;
using ChunkBuffer = std::array<wire::Chunk, kMaxChunks>;

/// The chunks of one packet. Spans point into the packet and into `room`.
struct PacketChunks {
    /// `with_token`: the payload ends with DDNet's token, which receivers cut off before they read
    /// chunks.
    PacketChunks(const wire::Packet& packet, bool with_token, ChunkBuffer& room);

    std::span<const wire::Chunk> chunks{};
    std::span<const std::byte> rest{};      ///< the bytes after the chunks: none, or a token
    std::optional<wire::WireError> error{}; ///< set if the last chunk is truncated
};

/// Why a receiver drops a packet. `wrong_token` has its own finding.
enum class Refusal : std::uint8_t {
    none,
    wrong_token,
    ack_window, ///< acknowledges chunks that were not sent, or fewer than before
    compressed_control,
    control_with_chunks,
    header_token_bit, ///< 0.6.5's token bit on a connection without such a token
    closed,           ///< the connection is over
    not_established,  ///< there is no connection yet
    other_protocol,   ///< a 0.7 packet on a 0.6 connection
    ack_unseen,       ///< acknowledges chunks that were not seen, but may have been sent
    count,
};

/// Decides which packets and chunks the receivers accept, by handshake, token, acknowledgement and
/// vital sequence. Rejected packets have no effect; they are counted and reported.
///
/// Rejecting needs evidence: what the receiver itself sent, and the connection's token. The relay
/// sees everything. A capture or a tap may lack datagrams, or all of one direction; a packet that
/// cannot be judged is called undecided and is not read.
///
/// The order of the checks is DDNet's: form, token, acknowledgement, then vital order of the chunks
/// (protocol sheet, item 10 of section 10).
class PacketAcceptance {
  public:
    /// Datagrams in flight when a connection closes arrive within this time.
    static constexpr record::Timestamp kLinger = 5'000'000'000;
    /// A side is no longer recorded if it is silent this long while the other side sends this many
    /// datagrams. Each peer sends at least once a second.
    static constexpr record::Timestamp kUnheard = 10'000'000'000;
    static constexpr int kUnheardDatagrams = 100;

    /// `sees_all`: no datagram can be missing. `server`: state shared by the server's sessions;
    /// must outlive this object.
    PacketAcceptance(bool sees_all, SharedServer& server) : sees_all_{sees_all}, shared_{&server} {}

    /// A datagram of this side passed, whether or not its connection is known.
    void note_sender(record::Timestamp time, wire::Direction direction);

    /// Whether this side ever sent a datagram.
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
    /// The control packet in a datagram with a 0.7 header, if the receiver reads it as one of its
    /// 0.6 connection; else nullopt.
    [[nodiscard]] std::optional<wire::Packet>
    find_control_under_seven(std::span<const std::byte> datagram, const Reporter& reporter);

    /// How the receiver reads the disputed header bits.
    [[nodiscard]] wire::HeaderTokenBit token_bit(std::span<const std::byte> datagram,
                                                 wire::Direction direction) const {
        return wire::has_disputed_bits(datagram) ? disputed_token_bit(direction)
                                                 : wire::HeaderTokenBit::read;
    }

    /// What the control packet changes about the connection.
    [[nodiscard]] ConnectionChange on_control(const wire::Packet& packet,
                                              const wire::Control& control, Reporter& reporter);
    /// Whether a CLOSE ends a connection or an attempt to connect.
    [[nodiscard]] bool closes(const wire::Packet& packet, const Reporter& reporter) const;
    /// Checks whether a datagram that is no 0.6 packet shows a running 0.7 connection.
    [[nodiscard]] ConnectionChange on_misfit(std::span<const std::byte> datagram,
                                             wire::PacketScratch& scratch,
                                             const Reporter& reporter);

    /// The server will not be seen: checks whether the client's packets alone show a connection.
    [[nodiscard]] ConnectionChange infer_from_client();

    /// The connection was closed by a peer or timed out.
    void close(record::Timestamp time);

    /// The client announced its DDNet version (client_version).
    void on_client_version(std::int32_t version) { client_version_ = version; }

    /// The server's program; its messages are to be passed to this object.
    [[nodiscard]] ServerProgram& server() { return server_; }

    /// What a packet of chunks changes about the connection.
    [[nodiscard]] ConnectionChange on_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                             const Reporter& reporter);
    /// Whether the receiver accepts the packet's chunks. Reports what is wrong with the packet.
    [[nodiscard]] bool accept(const wire::Packet& packet, const PacketChunks& chunks,
                              Reporter& reporter);

    /// Whether the chunks are an anti-spoof prelude.
    [[nodiscard]] bool is_prelude(const PacketChunks& chunks, Reporter& reporter);

    /// Whether the client has vital chunks that were not seen here, since the last call.
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

    /// A new connection: refusals are reported again.
    void restart();

    [[nodiscard]] const Connection& connection() const { return connection_; }

    /// The protocol's name in records; empty if unknown. "0.7+ddnet": 0.7, translated by a DDNet
    /// server.
    [[nodiscard]] std::string_view protocol_name() const;

    /// Saves what another observer needs to continue the connection.
    void save(SessionCheckpoint& checkpoint) const {
        checkpoint.form = connection_.form();
        checkpoint.token = connection_.token();
        checkpoint.translated = is_translated();
    }

    /// Continues a running connection from another observer's checkpoint.
    /// Precondition: its form is known.
    [[nodiscard]] ConnectionChange take_up(const SessionCheckpoint& checkpoint) {
        if (checkpoint.form != TokenForm::seven) {
            return connection_.take_up(checkpoint.form, checkpoint.token);
        }
        seven_.take_up(checkpoint.translated);
        return begin_seven(SevenChange::midway);
    }

    /// Takes over the client's version from another observer's checkpoint.
    void restore(const SessionCheckpoint& checkpoint) {
        if (checkpoint.client_version) {
            client_version_ = checkpoint.client_version;
        }
    }

    /// Whether a DDNet server translates for this 0.7 connection.
    [[nodiscard]] bool is_translated() const;

    [[nodiscard]] bool with_token() const { return connection_.form() == TokenForm::ddnet; }

  private:
    /// Why the receiver drops a packet; `none` if it accepts it. Control packets and packets with
    /// chunks.
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
    /// Why the receiver rejects this acknowledgement; accepts it if `none`.
    [[nodiscard]] Refusal take_ack(wire::Direction direction, std::uint16_t ack);
    /// Whether the receiver of this direction is recorded, so that its sent chunks are known.
    [[nodiscard]] bool knows_receiver(wire::Direction direction) const;
    /// Whether the evidence for this refusal may be missing from the capture.
    [[nodiscard]] bool is_undecided(Refusal refusal, wire::Direction direction) const;
    void report(Refusal refusal, Reporter& reporter);
    /// Counts the refusal; emits a finding for the first one with this reason.
    void report_once(record::FindingId id, Refusal refusal, Reporter& reporter);

    [[nodiscard]] wire::VitalClass take_vital(const wire::Chunk& chunk, Reporter& reporter);

    /// When one side was last seen.
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

/// How secret undecoded bytes are: they may contain a password or a whisper, unless there are at
/// most `harmless` bytes.
[[nodiscard]] wire::Secrecy secrecy_of_undecoded(std::span<const std::byte> bytes,
                                                 std::size_t harmless);

} // namespace tw::inspect
