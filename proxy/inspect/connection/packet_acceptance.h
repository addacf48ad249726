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

/// How a receiver treats a packet with bit 0x08 in its header, vanilla 0.6.5's token bit.
enum class TokenBitRule : std::uint8_t {
    reads_token, ///< the receiver reads a token after the header (vanilla 0.6.5)
    ignores_bit,
    drops_packet,
};

/// Rules for rejecting packets. Client and server programs differ in these rules.
struct ReceiverRules {
    bool refuses_compressed_control = false;
    /// The program drops a control packet whose header announces chunks. If false, the program also
    /// reads the payload as chunks, from the byte of the control kind on.
    bool refuses_control_with_chunks = false;
    TokenBitRule token_bit_rule = TokenBitRule::drops_packet;
    /// On a 0.6 connection, the program accepts a control packet with a 0.7 header. It then reads
    /// the token at the end of the packet, as in 0.6.
    bool reads_seven_header = false;

    friend bool operator==(const ReceiverRules&, const ReceiverRules&) = default;
};

/// The known properties of the game program that receives a packet.
struct ReceiverProgram {
    bool has_header_token = false; ///< a token follows the packet header, as in 0.6.5
    bool is_vanilla = false;
    /// DDNet version (major * 1000 + minor * 10 + patch) that the client announced or the server's
    /// traffic shows.
    std::optional<std::int32_t> version{};
    bool is_server = false;
};

/// Returns the rules of a receiver. An unknown program, such as a server before its first client
/// has joined, is treated as the newest DDNet. The newest DDNet rejects the most kinds of packets,
/// but no packets that honest peers send.
[[nodiscard]] ReceiverRules receiver_rules(const ReceiverProgram& receiver);

/// Why a receiver drops a packet. `none`: the receiver accepts it.
enum class PacketRefusal : std::uint8_t {
    none,
    wrong_token,
    /// The packet acknowledges chunks that were not sent, or fewer chunks than before.
    ack_out_of_range,
    compressed_control,
    control_with_chunks,
    header_token_bit, ///< 0.6.5's token bit is set, but the connection has no such token
    connection_closed,
    not_established, ///< no connection was established yet
    other_protocol,  ///< a 0.7 packet on a 0.6 connection
    ack_undecidable, ///< the packet acknowledges chunks that may be missing in the recording
    count,
};

/// Decides which packets and chunks of a session their receivers accept, by handshake, token,
/// acknowledgement and vital sequence. Rejected packets do not change the session's state. They are
/// counted and reported.
///
/// The evidence for a rejection is the connection's token and the packets that the receiver sent.
/// The relay sees all packets. In a capture or a tap, single datagrams or all datagrams of one
/// direction may be missing. If it is therefore unknown whether the receiver accepts a packet, the
/// packet's chunks are not read.
///
/// A packet is checked in DDNet's order: form of the packet, token, acknowledgement, then the vital
/// sequence of the chunks.
class PacketAcceptance {
  public:
    /// Datagrams that are in flight when a connection is closed arrive within this time (ns).
    static constexpr record::Timestamp kInFlightTime = 5'000'000'000;
    /// If one side sends nothing for this time (ns), and the other side sends
    /// kMaxUnansweredDatagrams datagrams, the silent side must be missing in the recording. A
    /// connected peer sends something at least once a second.
    static constexpr record::Timestamp kMaxSilence = 10'000'000'000;
    static constexpr int kMaxUnansweredDatagrams = 100; ///< number of datagrams, see kMaxSilence

    /// `sees_all`: whether no datagram can be missing. `server`: the server's activity; must
    /// outlive this object.
    PacketAcceptance(bool sees_all, ServerActivity& server)
        : sees_all_datagrams_{sees_all}, server_activity_{&server} {}

    /// Must be called for each datagram of the session. Stores when its sender was last active.
    void store_activity(record::Timestamp time, wire::Direction direction);

    /// Returns whether a datagram of this direction was seen. Always true if no datagram can be
    /// missing.
    [[nodiscard]] bool has_seen_direction(wire::Direction direction) const {
        return sees_all_datagrams_ || side_activities_[wire::index_of(direction)].was_seen;
    }

    /// Must be called for each datagram. Forgets a connection that was closed more than
    /// kInFlightTime ago.
    void expire_closed_connection(record::Timestamp time) {
        if (connection_.is_closed() && time - close_time_ > kInFlightTime) {
            connection_.forget_closed_connection();
        }
    }

    void forget_closed_connection() { connection_.forget_closed_connection(); }

    /// Returns whether the receiver accepts a control packet. Reports a rejected packet.
    [[nodiscard]] bool accept_control_packet(const wire::Packet& packet,
                                             const wire::Control& control, Reporter& reporter);
    /// Whether the receiver reads the chunks of an accepted control packet.
    [[nodiscard]] bool receiver_reads_chunks_of_control(const wire::Packet& packet,
                                                        const PacketChunks& chunks,
                                                        const Reporter& reporter);
    /// Reads a datagram with a 0.7 header as the receiver on a 0.6 connection does. Returns the 0.6
    /// control packet; nullopt if the receiver does not accept the datagram.
    [[nodiscard]] std::optional<wire::Packet>
    read_as_six_control(std::span<const std::byte> datagram, const Reporter& reporter);

    /// Returns how the receiver reads header bit 0x08, which 0.6 programs interpret differently.
    [[nodiscard]] wire::HeaderTokenBit meaning_of_token_bit(std::span<const std::byte> datagram,
                                                            wire::Direction direction) const;

    /// Handles an accepted control packet and returns how it changes the connection.
    [[nodiscard]] ConnectionChange on_control(const wire::Packet& packet,
                                              const wire::Control& control, Reporter& reporter);
    /// Whether this CLOSE ends the current connection or an attempt to connect.
    [[nodiscard]] bool is_effective_close(const wire::Packet& packet,
                                          const Reporter& reporter) const;
    /// Handles a datagram that is not a 0.6 packet. It may show a running 0.7 connection.
    [[nodiscard]] ConnectionChange on_non_six_datagram(std::span<const std::byte> datagram,
                                                       wire::PacketScratch& scratch,
                                                       const Reporter& reporter);

    /// Adopts a running connection if the client's packets show one. Used for recordings that
    /// contain only the client's packets.
    [[nodiscard]] ConnectionChange infer_connection_from_client();

    /// Called when the connection has ended: a peer closed it, or it timed out.
    void close(record::Timestamp time);

    void on_client_version(std::int32_t version) { client_version_ = version; }

    /// Returns the server's program and version, as far as known. The caller must pass the server's
    /// messages to the result.
    [[nodiscard]] ServerProgram& server_program() { return server_program_; }

    /// Handles a packet of chunks and returns how it changes the connection.
    [[nodiscard]] ConnectionChange on_chunk_packet(const wire::Packet& packet,
                                                   const PacketChunks& chunks,
                                                   const Reporter& reporter);
    /// Returns whether the receiver accepts the packet's chunks. Counts and reports a rejected
    /// packet.
    [[nodiscard]] bool accept_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                     Reporter& reporter);

    /// Whether the chunks are a server's anti-spoof prelude, which a client without token support
    /// must answer before it can join.
    [[nodiscard]] bool is_anti_spoof_prelude(const PacketChunks& chunks, Reporter& reporter);

    /// Returns whether, since the last call, the client acknowledged vital chunks that twscope did
    /// not see.
    [[nodiscard]] bool take_missed_chunks_flag() {
        return std::exchange(has_missed_chunks_, false);
    }

    /// Counts and classifies a chunk of an accepted packet. If the result is `next`, the receiver
    /// processes the chunk, otherwise drops it.
    [[nodiscard]] wire::VitalClass classify_chunk(const wire::Chunk& chunk, Reporter& reporter);

    /// Called when copies of datagrams were lost. The next sequence numbers and acknowledgements
    /// are then accepted, whatever they are.
    void on_missed_datagrams() { connection_.on_missed_datagrams(); }

    /// Forgets reported refusals and the client's version. Called when a connection begins.
    void begin_connection();

    [[nodiscard]] const Connection& connection() const { return connection_; }

    /// Returns the protocol's name in records; empty if unknown. "0.7+ddnet": a DDNet server
    /// translates its 0.6 game for this 0.7 client.
    [[nodiscard]] std::string_view protocol_name() const;

    /// Writes the connection's state into a checkpoint for another observer process.
    void save_to_checkpoint(SessionCheckpoint& checkpoint) const {
        checkpoint.token_form = connection_.token_form();
        checkpoint.token = connection_.token();
        checkpoint.is_translated_to_seven = is_translated_to_seven();
    }

    /// Continues a running connection from another observer process's checkpoint.
    /// Precondition: checkpoint.token_form is not unknown.
    [[nodiscard]] ConnectionChange continue_connection(const SessionCheckpoint& checkpoint) {
        if (checkpoint.token_form != TokenForm::seven) {
            return connection_.continue_connection(checkpoint.token_form, checkpoint.token);
        }
        seven_handshake_.continue_connection(checkpoint.is_translated_to_seven);
        return begin_seven_connection(ConnectionChange::joined_midway);
    }

    /// Adopts the client's version, if another observer process's checkpoint contains it.
    void restore_client_version(const SessionCheckpoint& checkpoint) {
        if (checkpoint.client_version) {
            client_version_ = checkpoint.client_version;
        }
    }

    /// Whether this is a 0.7 connection to a DDNet server, which translates its 0.6 game.
    [[nodiscard]] bool is_translated_to_seven() const;

    [[nodiscard]] bool has_ddnet_token() const {
        return connection_.token_form() == TokenForm::ddnet;
    }

  private:
    /// Returns why the receiver drops a control packet; `none` if it accepts the packet.
    [[nodiscard]] PacketRefusal refusal_of_control(const wire::Packet& packet,
                                                   const wire::Control& control,
                                                   wire::Direction direction);
    /// Returns why the receiver drops a packet of chunks; `none` if it accepts the packet.
    [[nodiscard]] PacketRefusal refusal_of_chunks(const wire::Packet& packet,
                                                  const PacketChunks& chunks,
                                                  wire::Direction direction);
    [[nodiscard]] PacketRefusal refusal_of_seven_control(const wire::Packet& packet,
                                                         const wire::Control& control,
                                                         wire::Direction direction);
    [[nodiscard]] ConnectionChange begin_seven_connection(ConnectionChange change);
    [[nodiscard]] ReceiverRules receiver_rules_of(wire::Direction direction) const;
    /// Returns why an established connection rejects this control packet; `none` if it accepts it.
    /// Checks the token first, then the acknowledgement.
    [[nodiscard]] PacketRefusal refusal_by_connection(const wire::Packet& packet,
                                                      wire::Direction direction);
    /// Returns why the receiver rejects this acknowledgement; `none` if it accepts it.
    [[nodiscard]] PacketRefusal refusal_of_ack(wire::Direction direction, std::uint16_t ack);
    /// Whether the recording contains packets of the side that receives this direction's packets.
    /// Without them, it is unknown which acknowledgements that side accepts.
    [[nodiscard]] bool has_traffic_from_receiver(wire::Direction direction) const;
    /// Whether this refusal may be wrong, because datagrams may be missing in the recording.
    [[nodiscard]] bool is_refusal_uncertain(PacketRefusal refusal, wire::Direction direction) const;
    void report_refusal(PacketRefusal refusal, Reporter& reporter);
    /// Counts the refusal. Emits a finding only for the connection's first refusal with this
    /// reason.
    void report_refusal_once(record::FindingId id, PacketRefusal refusal, Reporter& reporter);

    /// Whether and when one side of the session sent datagrams.
    struct SideActivity {
        bool was_seen = false;
        record::Timestamp last_time = 0;
        int num_unanswered = 0; ///< number of datagrams of the other side since `last_time`
    };

    bool sees_all_datagrams_;
    ServerActivity* server_activity_;
    bool had_connection_ = false;
    std::array<SideActivity, 2> side_activities_; ///< index: the direction of the side's datagrams
    Connection connection_;
    SevenHandshake seven_handshake_;
    record::Timestamp close_time_ = 0;
    bool has_missed_chunks_ = false;
    std::optional<std::int32_t> client_version_;
    ServerProgram server_program_;
    /// The refusals that were reported in this connection.
    std::bitset<static_cast<std::size_t>(PacketRefusal::count)> reported_refusals_;
};

/// Returns `secret` if there are more than `harmless` undecoded bytes, because so many bytes may
/// contain a password or a whisper.
[[nodiscard]] wire::Secrecy secrecy_of_undecoded_bytes(std::span<const std::byte> bytes,
                                                       std::size_t harmless);

} // namespace tw::inspect
