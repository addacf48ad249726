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

/// What a receiver makes of the header's bit 0x08.
enum class TokenBit : std::uint8_t {
    token,   ///< 0.6.5: its token follows the header
    ignored, ///< the packet is read as if it were not there
    refused,
};

/// What programs refuse in packets that others take. Only what matters to an observer is here.
struct ReceiverRules {
    std::string_view program;
    bool refuses_compressed_control = false;
    /// Who does not refuse them reads the chunks, the first from the byte that is the kind.
    bool refuses_control_with_chunks = false;
    TokenBit token_bit = TokenBit::refused;
    /// Takes a control packet under 0.7's header for one of the 0.6 connection it comes on: its
    /// token is looked for where 0.6 has it.
    bool reads_seven_header = false;
};

/// What is known of who receives.
struct Receiver {
    bool header_token = false; ///< the connection has 0.6.5's token
    bool vanilla = false;      ///< not DDNet
    /// Of DDNet (major * 1000 + minor * 10 + patch): what a client announced, what a server shows.
    std::optional<std::int32_t> version{};
    bool server = false;
};

/// Who is not known is taken for today's DDNet: it refuses most, and what it refuses no honest peer
/// sends. That holds for a server until its version is seen, so while the first client joins.
[[nodiscard]] const ReceiverRules& receiver_rules(const Receiver& receiver);

/// What a packet header can count.
inline constexpr std::size_t kMaxChunks = 255;
using ChunkRoom = std::array<wire::Chunk, kMaxChunks>;

/// The chunks of one packet. Spans point into the packet and into the room they were read to.
struct PacketChunks {
    /// `with_token`: DDNet's token stands at the end; receivers cut it off before they read chunks.
    PacketChunks(const wire::Packet& packet, bool with_token, ChunkRoom& room);

    std::span<const wire::Chunk> chunks{};
    std::span<const std::byte> rest{};      ///< behind them: nothing, or a token
    std::optional<wire::WireError> error{}; ///< a cut chunk ended them
};

/// Why a receiver drops a packet. `wrong_token` has a finding of its own.
enum class Refusal : std::uint8_t {
    none,
    wrong_token,
    ack_window, ///< acknowledges what was not sent, or less than before
    compressed_control,
    control_with_chunks,
    header_token_bit, ///< the bit of 0.6.5 where the connection has no such token
    closed,           ///< the connection is over
    not_established,  ///< there is none yet
    other_protocol,   ///< of 0.7, where a connection of 0.6 runs
    ack_unseen,       ///< the same, unless its receiver sent what was not recorded
    count,
};

/// Decides what belongs to a session's connection and comes in the right order, as the receivers
/// do: handshakes, tokens, acknowledgements, vital sequences. What a receiver drops has no effect;
/// it is counted and reported.
///
/// A rule of the receiver needs evidence: what it sent itself, and the connection's token. A relay has
/// that by construction. A capture or a tap may lack datagrams, or all of one direction; there a
/// packet whose fate cannot be told is called undecided, and is not read.
///
/// The order of the checks is DDNet's: form, token, acknowledgement, then chunks in vital order
/// (protocol sheet, item 10 of section 10).
class PacketAcceptance {
  public:
    /// What is under way when a connection closes is there after this time.
    static constexpr record::Timestamp kLinger = 5'000'000'000;
    /// A side that says nothing for so long, while the other one sends so many datagrams, is not
    /// recorded any more. A peer repeats itself every second.
    static constexpr record::Timestamp kUnheard = 10'000'000'000;
    static constexpr int kUnheardDatagrams = 100;

    /// `sees_all`: what was not seen was not sent.
    /// `server`: what its sessions know of it together; outlives this.
    PacketAcceptance(bool sees_all, SharedServer& server) : sees_all_{sees_all}, shared_{&server} {}

    /// A side said something in a connection, known or not.
    void hear(record::Timestamp time, wire::Direction direction);

    /// Whether this side ever said something.
    [[nodiscard]] bool ever_heard(wire::Direction direction) const {
        return sees_all_ || voices_[wire::index_of(direction)].ever;
    }

    /// To be called for every datagram: forgets a connection that was closed long ago.
    void begin(record::Timestamp time) {
        if (connection_.closed() && time - closed_at_ > kLinger) {
            connection_.forget();
        }
    }

    /// The connection is over, and nothing of it is under way any more.
    void forget() { connection_.forget(); }

    /// Whether the receiver takes a control packet. What it does not take is reported.
    [[nodiscard]] bool accept_control(const wire::Packet& packet, const wire::Control& control,
                                      Reporter& reporter);
    /// Whether the receiver reads chunks in a control packet that it took.
    [[nodiscard]] bool takes_chunks_of_control(const wire::Packet& packet,
                                               const PacketChunks& chunks,
                                               const Reporter& reporter);
    /// A control packet under 0.7's header, if its receiver takes it for one of the 0.6 connection.
    [[nodiscard]] std::optional<wire::Packet>
    find_control_under_seven(std::span<const std::byte> datagram, const Reporter& reporter);

    /// What the receiver makes of a header's bits.
    [[nodiscard]] wire::HeaderTokenBit token_bit(std::span<const std::byte> datagram,
                                                 wire::Direction direction) const {
        return wire::has_disputed_bits(datagram) ? disputed_token_bit(direction)
                                                 : wire::HeaderTokenBit::read;
    }

    /// Whether the control packet changes what the connection is.
    [[nodiscard]] ConnectionChange on_control(const wire::Packet& packet,
                                              const wire::Control& control, Reporter& reporter);
    /// Whether a CLOSE ends something: a connection, or an attempt at one. Precondition: it was
    /// accepted.
    [[nodiscard]] bool closes(const wire::Packet& packet, const Reporter& reporter) const;
    /// Whether a datagram that does not fit 0.6 shows that a 0.7 connection runs here.
    [[nodiscard]] ConnectionChange on_misfit(std::span<const std::byte> datagram,
                                             wire::PacketScratch& scratch,
                                             const Reporter& reporter);

    /// Nothing more will be heard of the server: whether the client's packets alone show a connection.
    [[nodiscard]] ConnectionChange take_one_side();

    /// The connection was closed, by its peers or by time.
    void close(record::Timestamp time);

    /// What program the client is (client_version).
    void on_client_version(std::int32_t version) { client_version_ = version; }

    /// What program the server is: to be told what it sends.
    [[nodiscard]] ServerProgram& server() { return server_; }

    /// Whether a packet of chunks changes what the connection is.
    [[nodiscard]] ConnectionChange on_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                             const Reporter& reporter);
    /// Whether the connection takes the packet's chunks. What is odd about it is reported.
    [[nodiscard]] bool accept(const wire::Packet& packet, const PacketChunks& chunks,
                              Reporter& reporter);

    /// Whether they are an anti-spoof prelude.
    [[nodiscard]] bool is_prelude(const PacketChunks& chunks, Reporter& reporter);

    /// Whether the client has vital chunks that did not pass by, since this was asked last.
    [[nodiscard]] bool missed_chunks() { return std::exchange(missed_chunks_, false); }

    /// A chunk of an accepted packet. `next`: it is to be processed, vital or not.
    [[nodiscard]] wire::VitalClass take(const wire::Chunk& chunk, Reporter& reporter) {
        record::DirectionStats& stats = reporter.direction_stats();
        ++stats.chunks;
        if (chunk.resend) {
            ++stats.resent;
        }
        return chunk.vital ? take_vital(chunk, reporter) : wire::VitalClass::next;
    }

    /// Copies were lost: sequences may have moved on unseen.
    void resynchronise() { connection_.resynchronise(); }

    /// A new connection: refusals are reported again.
    void restart();

    [[nodiscard]] const Connection& connection() const { return connection_; }

    /// As records name it; empty while nothing is known. "0.7+ddnet": of 0.7, and the server is one
    /// of DDNet, which translates for it.
    [[nodiscard]] std::string_view protocol_name() const;

    /// What another observer has to know to take the connection up.
    void save(SessionCheckpoint& checkpoint) const {
        checkpoint.form = connection_.form();
        checkpoint.token = connection_.token();
        checkpoint.translated = is_translated();
    }

    /// A connection was running already, as the observer before this one knew.
    /// Precondition: its form is known.
    [[nodiscard]] ConnectionChange take_up(const SessionCheckpoint& checkpoint) {
        if (checkpoint.form != TokenForm::seven) {
            return connection_.take_up(checkpoint.form, checkpoint.token);
        }
        seven_.take_up(checkpoint.translated);
        return begin_seven(SevenChange::midway);
    }

    /// What it takes from another observer while it runs.
    void restore(const SessionCheckpoint& checkpoint) {
        if (checkpoint.client_version) {
            client_version_ = checkpoint.client_version;
        }
    }

    /// Whether the connection is of 0.7 and its server one of DDNet.
    [[nodiscard]] bool is_translated() const;

    [[nodiscard]] bool with_token() const { return connection_.form() == TokenForm::ddnet; }

  private:
    /// Handshakes come before a connection has acknowledgements.
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
    /// Whether an established connection takes this control packet: by token, then by ack.
    [[nodiscard]] Refusal refusal_in_connection(const wire::Packet& packet,
                                                wire::Direction direction);
    /// Whether the receiver takes this acknowledgement.
    [[nodiscard]] Refusal take_ack(wire::Direction direction, std::uint16_t ack);
    /// Whether the receiver of this direction is recorded, so that what it sent is known.
    [[nodiscard]] bool knows_receiver(wire::Direction direction) const;
    /// Whether evidence is missing for this refusal.
    [[nodiscard]] bool is_undecided(Refusal refusal, wire::Direction direction) const;
    void report(Refusal refusal, Reporter& reporter);
    /// Counts; hands out a finding the first time that this is the reason.
    void report_once(record::FindingId id, Refusal refusal, Reporter& reporter);

    [[nodiscard]] wire::VitalClass take_vital(const wire::Chunk& chunk, Reporter& reporter);

    /// When one side was heard.
    struct Voice {
        bool ever = false;
        record::Timestamp last = 0;
        int answers = 0; ///< datagrams of the other side since then
    };

    bool sees_all_;
    SharedServer* shared_;
    bool had_connection_ = false;
    std::array<Voice, 2> voices_; ///< by direction
    Connection connection_;
    SevenHandshake seven_;
    record::Timestamp closed_at_ = 0;
    bool missed_chunks_ = false;
    std::optional<std::int32_t> client_version_;
    ServerProgram server_;
    std::bitset<static_cast<std::size_t>(Refusal::count)> reported_; ///< of this connection
};

/// Bytes that nobody could decode may hold a password or a whisper, unless they are too few.
[[nodiscard]] wire::Secrecy secrecy_of_undecoded(std::span<const std::byte> bytes,
                                                 std::size_t harmless);

} // namespace tw::inspect
