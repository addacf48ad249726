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
#include <string_view>
#include <vector>

namespace tw::replay {

/// The sending side of a connection. It collects messages into packets, and adds the token, the
/// acknowledgement, and sequences for vital messages, which are resent until they are acknowledged.
class PacketSender {
  public:
    using Bytes = std::vector<std::byte>;

    explicit PacketSender(wire::Dialect dialect) : dialect_{dialect} {}

    /// Sets the token of the packets. In 0.6, it is DDNet's connection token; in 0.7, the server's token.
    void set_token(std::optional<wire::Token> token) { token_ = token; }

    /// Sets the client's own token, which the client announces in 0.7.
    void set_own_token(const wire::Token& token) { own_token_ = token; }

    [[nodiscard]] const std::optional<wire::Token>& token() const { return token_; }

    /// Adds a vital message. Returns false if too many vital messages are unacknowledged.
    /// Precondition: `message` fits into a chunk.
    bool add_vital(std::span<const std::byte> message, record::Timestamp now);
    void add_nonvital(std::span<const std::byte> message);
    void add_control(wire::ControlKind kind, record::Timestamp now,
                     std::optional<std::string_view> reason = std::nullopt);

    /// Sets the sequence to acknowledge: that of the peer's last vital chunk received in order.
    void acknowledge(std::uint16_t sequence) { ack_ = sequence; }

    /// Makes the next packet request a resend. Called if a chunk of the peer is missing.
    void request_resend() { resend_requested_ = true; }

    void on_ack(std::uint16_t ack);
    /// Handles the peer's resend request: resends all unacknowledged chunks.
    void on_resend_request(record::Timestamp now);
    /// Resends chunks that were not acknowledged in time. Sends a keepalive if nothing else was sent.
    void on_time(record::Timestamp now);
    /// Makes packets from the collected messages.
    void flush(record::Timestamp now);

    /// Returns the packets to send now, and removes them.
    [[nodiscard]] std::vector<Bytes> take_packets();

    /// The number of chunks that were resent.
    [[nodiscard]] std::uint64_t resent() const { return resent_; }

    /// The time at which the oldest unacknowledged chunk was first sent; nullopt if there is none.
    [[nodiscard]] std::optional<record::Timestamp> waiting_since() const {
        return unacked_.empty() ? std::nullopt : std::optional{unacked_.front().first_sent};
    }

  private:
    struct UnackedChunk {
        std::uint16_t sequence = 0;
        Bytes message;
        record::Timestamp first_sent = 0;
        record::Timestamp sent = 0;
    };

    [[nodiscard]] wire::ControlSpec control_of(wire::ControlKind kind) const;
    void append(bool vital, std::uint16_t sequence, bool resend,
                std::span<const std::byte> message);
    void resend_chunk(UnackedChunk& chunk, record::Timestamp now);
    void pack_chunks();

    wire::Dialect dialect_;
    std::optional<wire::Token> token_;
    wire::Token own_token_ = wire::kTokenUnknown;
    std::uint16_t sequence_ = 0; ///< sequence of the last vital chunk sent
    std::uint16_t ack_ = 0;
    bool resend_requested_ = false;
    std::deque<UnackedChunk> unacked_;
    Bytes chunks_; ///< the chunks collected for the next packet
    std::uint8_t num_chunks_ = 0;
    std::vector<Bytes> packets_;
    record::Timestamp sent_ = 0;
    record::Timestamp answered_ = 0; ///< time of the last answer to a resend request
    std::uint64_t resent_ = 0;
};

/// How a client's connection ended.
enum class Ending : std::uint8_t {
    none, ///< not ended yet
    finished,
    interrupted, ///< the run was stopped
    unanswered,  ///< the server did not answer the client's CONNECT
    /// The server closed the connection before the client was in the game, or never let it in.
    refused,
    closed, ///< the server closed the connection of a client in the game
    silent, ///< the server stopped answering or acknowledging
};

/// Counts of a client, apart from those of the inspector.
struct ClientCounts {
    std::uint64_t inputs = 0;
    std::uint64_t messages = 0;
    std::uint64_t skipped = 0; ///< inputs not sent because there was no snapshot to refer to
    std::uint64_t pings = 0;
    record::Spread round_trip_us{};
};

/// A client that plays a script: the protocol without sockets and clocks. The connection's inspector
/// passes on only those messages of the server that a real client would accept.
///
/// Source: DDNet's CNetConnection (handshake, tokens, resends) and CClient (join, acknowledgements,
/// inputs).
class ReplayClient {
  public:
    using Timestamp = record::Timestamp;

    struct Options {
        std::string password{};
        double speed = 1;
        /// In nanoseconds from the client's start; 0 for the script's length.
        Timestamp duration = 0;
        Timestamp timeout = 10'000'000'000;
        /// The id of the replaying client. It differs from the captured client's.
        std::array<std::byte, 16> connection_id{};
        wire::Token token{}; ///< the replaying client's own token (0.7)
    };

    /// `start`: the time at which the client connects. `script` must outlive this object.
    ReplayClient(const ClientScript& script, Options options, Timestamp start);

    /// Sends all messages that are due at this time, and checks timeouts.
    void on_time(Timestamp now);

    // These functions receive the server's packets: first on_packet(), then on_chunk() for each chunk. The
    // current time is the argument of the last on_time().
    void on_control(const wire::Packet& packet, const wire::Control& control);
    void on_packet(std::uint16_t ack, bool resend);
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken, const wire::MessageHead* head);
    void on_snapshot(snapshot::Tick tick);
    /// Called for a snapshot that does not match the server's checksum.
    void on_bad_snapshot();
    /// Called for a snapshot whose base is missing. Requests a full snapshot from the server.
    void on_unknown_base();

    void close_connection(Ending ending);

    /// Returns the datagrams to send now.
    [[nodiscard]] std::vector<PacketSender::Bytes> take_datagrams();
    /// The time at which on_time() must be called next, even if nothing arrives.
    [[nodiscard]] Timestamp next_due() const;

    [[nodiscard]] Ending ending() const { return ending_; }

    [[nodiscard]] bool has_ended() const { return ending_ != Ending::none; }

    /// True if the client has been in the game.
    [[nodiscard]] bool was_in_game() const { return entered_.has_value(); }

    /// The server's reason for closing the connection.
    [[nodiscard]] const std::string& close_reason() const { return reason_; }

    [[nodiscard]] const ClientCounts& counts() const { return counts_; }

    [[nodiscard]] std::uint64_t resent() const { return sender_.resent(); }

  private:
    enum class Phase : std::uint8_t { waiting, connecting, joining, playing };

    void connect();
    void note_answer();
    void on_control_of_six(const wire::Control& control);
    void on_control_of_seven(const wire::Packet& packet, const wire::Control& control);
    void on_close(const wire::Control& control);
    void send_info();
    void on_message(const wire::MessageHead& head, bool vital);
    void enter_game();
    void acknowledge_secret_tick(snapshot::Tick secret);
    void check_timeouts();
    void play_steps();
    void send_input(std::int32_t ack, std::int32_t intended, std::span<const std::byte> pressed);
    void keep_acknowledging();
    void ping();
    [[nodiscard]] Timestamp due_time(const ScriptStep& step) const;

    void end(Ending ending) { ending_ = has_ended() ? ending_ : ending; }

    const ClientScript* script_;
    Options options_;
    PacketSender sender_;
    Phase phase_ = Phase::waiting;
    Ending ending_ = Ending::none;
    std::string reason_;
    Timestamp now_;
    Timestamp start_;
    Timestamp heard_;
    bool answered_ = false;   ///< the server has sent something
    Timestamp connected_ = 0; ///< time of the last CONNECT
    std::optional<Timestamp> entered_;
    bool ready_ = false; ///< the client has answered the server's messages that verify its address
    std::optional<snapshot::Tick> newest_; ///< tick of the newest snapshot
    int bad_ = 0;          ///< number of wrong snapshots minus number of correct ones; not below 0
    std::size_t next_ = 0; ///< index of the next step
    Timestamp input_sent_ = 0;
    std::vector<std::byte> pressed_; ///< the ints of the last input
    Timestamp pinged_ = 0;
    bool ping_open_ = false;
    ClientCounts counts_;
};

} // namespace tw::replay
