#pragma once

#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/replay/client_script.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::replay {

/// The numbers that the clients count in a run. The inspector counts everything else.
struct ClientCounts {
    std::uint64_t inputs = 0;
    std::uint64_t messages = 0;
    /// Inputs not sent, because they were late or there was no snapshot yet.
    std::uint64_t skipped_inputs = 0;
    std::uint64_t pings = 0;
    std::uint64_t resent_chunks = 0;
    record::Distribution round_trip_us{};
};

/// Makes the packets that a client sends. Collects messages into packets, and adds the token, the
/// acknowledgement, and sequences for vital messages. Resends vital messages until they are
/// acknowledged.
class PacketSender {
  public:
    /// Counts resent chunks in `counts`, which must outlive this object.
    PacketSender(wire::Dialect dialect, ClientCounts& counts)
        : dialect_{dialect}, counts_{&counts} {}

    /// The token in the packets' headers: in 0.6, DDNet's connection token; in 0.7, the server's
    /// token.
    std::optional<wire::Token> token{};
    wire::Token own_token = wire::kTokenUnknown; ///< announced by the client in 0.7
    /// The sequence of the latest vital chunk that was received in order.
    std::uint16_t acknowledged_sequence = 0;
    /// Whether the next packet requests a resend, because a chunk of the peer is missing.
    bool requests_resend = false;

    /// Adds a vital message. Returns false if too many vital messages are unacknowledged.
    /// Precondition: `message` fits into a chunk.
    bool add_vital_message(std::span<const std::byte> message, record::Timestamp now);
    void add_nonvital_message(std::span<const std::byte> message);
    void add_control(wire::ControlKind kind, record::Timestamp now);

    void on_ack(std::uint16_t ack);
    /// Resends all unacknowledged chunks. Called when the peer requests a resend.
    void on_resend_request(record::Timestamp now);
    /// Resends chunks that were not acknowledged in time. Adds a keepalive if nothing was sent for
    /// a while.
    void on_time(record::Timestamp now);
    void flush(record::Timestamp now);

    [[nodiscard]] std::vector<Bytes> take_packets();

    /// Returns the time at which the oldest unacknowledged chunk was first sent; nullopt if all
    /// chunks are acknowledged.
    [[nodiscard]] std::optional<record::Timestamp> oldest_unacknowledged_since() const {
        return unacked_.empty() ? std::nullopt : std::optional{unacked_.front().first_sent};
    }

  private:
    struct UnackedChunk {
        std::uint16_t sequence = 0;
        Bytes message;
        record::Timestamp first_sent = 0;
        record::Timestamp last_sent = 0;
    };

    [[nodiscard]] wire::ControlSpec make_control(wire::ControlKind kind) const;
    void append_chunk(bool vital, std::uint16_t sequence, bool resend,
                      std::span<const std::byte> message);
    void resend_chunk(UnackedChunk& chunk, record::Timestamp now);
    void pack_chunks();

    wire::Dialect dialect_;
    ClientCounts* counts_;
    std::uint16_t sequence_ = 0; ///< sequence of the latest vital chunk that was sent
    std::deque<UnackedChunk> unacked_;
    Bytes chunks_; ///< the chunks collected for the next packet
    std::uint8_t num_chunks_ = 0;
    std::vector<Bytes> packets_;
    record::Timestamp last_send_time_ = 0;
    record::Timestamp last_resend_time_ = 0; ///< time of the latest answer to a resend request
};

/// How a client's connection ended.
enum class ClientEnding : std::uint8_t {
    none, ///< the connection has not ended
    finished,
    interrupted, ///< the run was stopped
    unanswered,  ///< the server did not answer the client's CONNECT
    /// The server closed the connection before the client was in the game, or never let the client
    /// into the game.
    refused,
    closed, ///< the server closed the connection of a client in the game
    silent, ///< the server stopped answering or acknowledging
};

/// A client that plays a script: implements the protocol without sockets and clocks. Receives the
/// server's messages from an inspector, which drops messages that a real client would not accept.
class ReplayClient {
  public:
    using Timestamp = record::Timestamp;

    struct Options {
        std::string password{};
        double speed = 1;
        /// How long the client plays, in nanoseconds; 0 for the length of the script.
        Timestamp duration = 0;
        Timestamp timeout = 10'000'000'000;
        /// Replaces the captured client's id in the client_version message.
        std::array<std::byte, 16> connection_id{};
        wire::Token token{}; ///< the replaying client's token (0.7)
    };

    /// `start`: the time at which the client connects. The client adds its numbers to `counts`.
    /// `script` and `counts` must outlive this object.
    ReplayClient(const ClientScript& script, Options options, Timestamp start,
                 ClientCounts& counts);

    /// Makes all packets that are due at this time, and checks timeouts.
    void on_time(Timestamp now);

    // These functions receive the server's packets: on_control() receives a control packet. For
    // any other packet, on_packet() is called, and then on_chunk() for each chunk. The time of a
    // packet is the time of the latest on_time() call.
    void on_control(const wire::Packet& packet, const wire::Control& control);
    void on_packet(std::uint16_t ack, bool resend);
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHeader* head);
    /// Called for a snapshot that matches the server's checksum.
    void on_verified_snapshot(snapshot::Tick tick);
    void on_wrong_snapshot();
    /// Requests a full snapshot from the server. Called for a snapshot whose base is missing.
    void on_unknown_base();

    void close_connection(ClientEnding ending);

    [[nodiscard]] std::vector<Bytes> take_datagrams();
    /// Returns the time at which on_time() must be called next, even if nothing arrives.
    [[nodiscard]] Timestamp next_due_time() const;

    [[nodiscard]] ClientEnding ending() const { return ending_; }

    [[nodiscard]] bool has_ended() const { return ending_ != ClientEnding::none; }

    [[nodiscard]] bool was_in_game() const { return game_entry_time_.has_value(); }

    [[nodiscard]] const std::string& close_reason() const { return close_reason_; }

  private:
    enum class Phase : std::uint8_t { waiting, connecting, joining, playing };

    void connect();
    void remember_server_packet();
    void on_control_0_6(const wire::Control& control);
    void on_control_0_7(const wire::Packet& packet, const wire::Control& control);
    void on_close(const wire::Control& control);
    void send_info();
    void on_message(const wire::MessageHeader& head, bool vital);
    void enter_game();
    void acknowledge_secret_tick(snapshot::Tick secret);
    void check_timeouts();
    void play_steps();
    void send_input(std::int32_t ack, std::int32_t intended, std::span<const std::byte> pressed);
    void repeat_last_input();
    void send_ping();
    [[nodiscard]] Timestamp due_time(const ScriptStep& step) const;

    void set_ending_once(ClientEnding ending) { ending_ = has_ended() ? ending_ : ending; }

    const ClientScript* script_;
    Options options_;
    PacketSender sender_;
    Phase phase_ = Phase::waiting;
    ClientEnding ending_ = ClientEnding::none;
    std::string close_reason_;
    Timestamp now_;
    Timestamp start_;
    Timestamp last_packet_time_;
    bool has_server_answered_ = false;
    Timestamp last_connect_time_ = 0; ///< 0 if no CONNECT was sent, or another is due at once
    std::optional<Timestamp> game_entry_time_;
    bool has_acknowledged_secret_ = false;      ///< see acknowledge_secret_tick()
    std::optional<snapshot::Tick> newest_tick_; ///< tick of the newest snapshot of this map
    int wrong_snapshot_count_ = 0; ///< each correct snapshot lowers the number by one, down to 0
    std::size_t next_step_ = 0;    ///< index into the script's steps
    Timestamp last_input_time_ = 0;
    Bytes last_input_; ///< bytes of the latest input (see ClientScript::bytes_of())
    Timestamp last_ping_time_ = 0;
    bool awaits_ping_reply_ = false;
    ClientCounts* counts_;
};

} // namespace tw::replay
