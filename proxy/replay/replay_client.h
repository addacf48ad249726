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

/// Makes the packets that a client sends. Collects messages into packets, and adds the token, the
/// acknowledgement, and sequences for vital messages. Resends vital messages until they are
/// acknowledged.
class PacketSender {
  public:
    using Bytes = std::vector<std::byte>;

    explicit PacketSender(wire::Dialect dialect) : dialect_{dialect} {}

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
    void add_control(wire::ControlKind kind, record::Timestamp now,
                     std::optional<std::string_view> reason = std::nullopt);

    void on_ack(std::uint16_t ack);
    /// Resends all unacknowledged chunks. Called when the peer requests a resend.
    void on_resend_request(record::Timestamp now);
    /// Resends chunks that were not acknowledged in time. Adds a keepalive if nothing was sent for
    /// a while.
    void on_time(record::Timestamp now);
    /// Makes packets from the collected messages.
    void flush(record::Timestamp now);

    /// Returns the packets to send now, and removes them.
    [[nodiscard]] std::vector<Bytes> take_packets();

    [[nodiscard]] std::uint64_t resent_count() const { return resent_; }

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
        record::Timestamp sent = 0;
    };

    [[nodiscard]] wire::ControlSpec make_control(wire::ControlKind kind) const;
    void append_chunk(bool vital, std::uint16_t sequence, bool resend,
                      std::span<const std::byte> message);
    void resend_chunk(UnackedChunk& chunk, record::Timestamp now);
    void pack_chunks();

    wire::Dialect dialect_;
    std::uint16_t sequence_ = 0; ///< sequence of the latest vital chunk that was sent
    std::deque<UnackedChunk> unacked_;
    Bytes chunks_; ///< the chunks collected for the next packet
    std::uint8_t num_chunks_ = 0;
    std::vector<Bytes> packets_;
    record::Timestamp sent_ = 0;
    record::Timestamp answered_ = 0; ///< time of the latest answer to a resend request
    std::uint64_t resent_ = 0;
};

/// How a client's connection ended.
enum class ClientEnding : std::uint8_t {
    none, ///< not ended yet
    finished,
    interrupted, ///< the run was stopped
    unanswered,  ///< the server did not answer the client's CONNECT
    /// The server closed the connection before the client was in the game, or never let the client
    /// into the game.
    refused,
    closed, ///< the server closed the connection of a client in the game
    silent, ///< the server stopped answering or acknowledging
};

/// The numbers that a client counts itself. The inspector counts the rest.
struct ClientCounts {
    std::uint64_t inputs = 0;
    std::uint64_t messages = 0;
    std::uint64_t skipped = 0; ///< number of inputs not sent: too late, or before any snapshot
    std::uint64_t pings = 0;
    record::Spread round_trip_us{};
};

/// A client that plays a script: implements the protocol without sockets and clocks. Receives the
/// server's messages from an inspector, which drops messages that a real client would not accept.
class ReplayClient {
  public:
    using Timestamp = record::Timestamp;

    struct Options {
        std::string password{};
        double speed = 1;
        /// How long the client plays, in nanoseconds from its start; 0 for the length of the
        /// script.
        Timestamp duration = 0;
        Timestamp timeout = 10'000'000'000;
        /// The connection id of the replaying client; differs from the captured client's.
        std::array<std::byte, 16> connection_id{};
        wire::Token token{}; ///< the replaying client's token (0.7)
    };

    /// `start`: the time at which the client connects. `script` must outlive this object.
    ReplayClient(const ClientScript& script, Options options, Timestamp start);

    /// Makes all packets that are due at this time, and checks timeouts.
    void on_time(Timestamp now);

    // These functions receive the server's packets: first on_packet(), then on_chunk() for each
    // chunk. The current time is the argument of the latest on_time().
    void on_control(const wire::Packet& packet, const wire::Control& control);
    void on_packet(std::uint16_t ack, bool resend);
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHeader* head);
    void on_snapshot(snapshot::Tick tick);
    /// Called for a snapshot that does not match the server's checksum.
    void on_bad_snapshot();
    /// Requests a full snapshot from the server. Called for a snapshot whose base is missing.
    void on_unknown_base();

    void close_connection(ClientEnding ending);

    /// Returns the datagrams to send now, and removes them.
    [[nodiscard]] std::vector<PacketSender::Bytes> take_datagrams();
    /// Returns the time at which on_time() must be called next, even if nothing arrives.
    [[nodiscard]] Timestamp next_due_time() const;

    [[nodiscard]] ClientEnding ending() const { return ending_; }

    [[nodiscard]] bool has_ended() const { return ending_ != ClientEnding::none; }

    [[nodiscard]] bool was_in_game() const { return entered_.has_value(); }

    /// Returns the reason that the server gave when it closed the connection.
    [[nodiscard]] const std::string& close_reason() const { return reason_; }

    [[nodiscard]] const ClientCounts& counts() const { return counts_; }

    [[nodiscard]] std::uint64_t resent_count() const { return sender_.resent_count(); }

  private:
    enum class Phase : std::uint8_t { waiting, connecting, joining, playing };

    void connect();
    void note_server_packet();
    void on_control_of_six(const wire::Control& control);
    void on_control_of_seven(const wire::Packet& packet, const wire::Control& control);
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

    void set_ending(ClientEnding ending) { ending_ = has_ended() ? ending_ : ending; }

    const ClientScript* script_;
    Options options_;
    PacketSender sender_;
    Phase phase_ = Phase::waiting;
    ClientEnding ending_ = ClientEnding::none;
    std::string reason_;
    Timestamp now_;
    Timestamp start_;
    Timestamp heard_;
    bool answered_ = false;   ///< the server has sent a packet
    Timestamp connected_ = 0; ///< time of the latest CONNECT
    std::optional<Timestamp> entered_;
    bool ready_ = false; ///< the client has answered the server's messages that verify its address
    std::optional<snapshot::Tick> newest_; ///< tick of the newest snapshot
    int bad_ = 0; ///< number of wrong snapshots minus number of correct snapshots, at least 0
    std::size_t next_ = 0; ///< index of the next step
    Timestamp input_sent_ = 0;
    std::vector<std::byte> pressed_; ///< the ints of the latest input
    Timestamp pinged_ = 0;
    bool ping_open_ = false;
    ClientCounts counts_;
};

} // namespace tw::replay
