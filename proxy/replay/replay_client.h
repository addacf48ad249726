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

/// The sending side of a connection: collects messages into packets with the token, an
/// acknowledgement, and sequences for vital messages, which are resent until they are acknowledged.
class Outbox {
  public:
    using Bytes = std::vector<std::byte>;

    explicit Outbox(wire::Dialect dialect) : dialect_{dialect} {}

    /// Sets the token of the packets. 0.6: DDNet's connection token. 0.7: the server's token.
    void set_token(std::optional<wire::Token> token) { token_ = token; }

    /// Sets the client's own token, which it announces (0.7).
    void set_own_token(const wire::Token& token) { own_token_ = token; }

    [[nodiscard]] const std::optional<wire::Token>& token() const { return token_; }

    /// Adds a vital message. Returns false if too many are not acknowledged yet.
    /// Precondition: `message` fits into a chunk.
    bool vital(std::span<const std::byte> message, record::Timestamp now);
    void plain(std::span<const std::byte> message);
    void control(wire::ControlKind kind, record::Timestamp now,
                 std::optional<std::string_view> reason = std::nullopt);

    /// Sets the sequence of the peer's last vital chunk received in order.
    void accept(std::uint16_t sequence) { ack_ = sequence; }

    /// Requests a resend: a chunk of the peer is missing.
    void ask_resend() { ask_resend_ = true; }

    void on_ack(std::uint16_t ack);
    /// Handles a resend request: the peer misses a chunk.
    void on_resend_request(record::Timestamp now);
    /// Resends chunks that waited long, and sends a keepalive if nothing else was sent.
    void on_time(record::Timestamp now);
    /// Makes packets from the collected messages.
    void flush(record::Timestamp now);

    /// Returns the packets to send now.
    [[nodiscard]] std::vector<Bytes> take();

    /// Chunks that were resent.
    [[nodiscard]] std::uint64_t resent() const { return resent_; }

    /// Time since which the oldest vital chunk waits for its acknowledgement.
    [[nodiscard]] std::optional<record::Timestamp> waiting_since() const {
        return unacked_.empty() ? std::nullopt : std::optional{unacked_.front().first_sent};
    }

  private:
    struct Vital {
        std::uint16_t sequence = 0;
        Bytes message;
        record::Timestamp first_sent = 0;
        record::Timestamp sent = 0;
    };

    [[nodiscard]] wire::ControlSpec control_of(wire::ControlKind kind) const;
    void append(bool vital, std::uint16_t sequence, bool resend,
                std::span<const std::byte> message);
    void resend(Vital& chunk, record::Timestamp now);
    void pack();

    wire::Dialect dialect_;
    std::optional<wire::Token> token_;
    wire::Token own_token_ = wire::kTokenUnknown;
    std::uint16_t sequence_ = 0; ///< sequence of the last vital chunk
    std::uint16_t ack_ = 0;
    bool ask_resend_ = false;
    std::deque<Vital> unacked_;
    Bytes chunks_; ///< collected chunks
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
    unanswered,  ///< its CONNECT was not answered
    /// The server closed the connection, or never let the client in, before it was in the game.
    refused,
    closed, ///< the server closed the connection
    silent, ///< the server stopped answering or acknowledging
};

/// Counts of a client, besides those of its inspector.
struct ClientTally {
    std::uint64_t inputs = 0;
    std::uint64_t messages = 0;
    std::uint64_t skipped = 0; ///< inputs skipped because there was no snapshot to refer to
    std::uint64_t pings = 0;
    record::Spread round_trip_us{};
};

/// A client that plays a script: its part of the protocol, without sockets and clocks. The
/// inspector of the connection passes it what the server sends, so that it accepts what a real
/// receiver accepts.
///
/// Source: DDNet's CNetConnection (handshake, tokens, resends) and CClient (join, acknowledgements,
/// inputs).
class ReplayClient {
  public:
    using Timestamp = record::Timestamp;

    struct Options {
        std::string password{};
        double speed = 1;
        Timestamp duration = 0; ///< nanoseconds from its start; 0 for the script's length
        Timestamp timeout = 10'000'000'000;
        /// The replaying client's own id, not the captured client's.
        std::array<std::byte, 16> connection_id{};
        wire::Token token{}; ///< the replaying client's own token (0.7)
    };

    /// `start`: when the client connects. `script` has to outlive it.
    ReplayClient(const ClientScript& script, Options options, Timestamp start);

    /// Does everything that is due.
    void on_time(Timestamp now);

    // What the server sends: `on_packet` first, then its chunks. Time is that of the last
    // on_time().
    void on_control(const wire::Packet& packet, const wire::Control& control);
    void on_packet(std::uint16_t ack, bool resend);
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken, const wire::MessageHead* head);
    void on_snapshot(snapshot::Tick tick);
    /// A snapshot does not match the server's checksum.
    void on_bad_snapshot();
    /// The base of a snapshot is missing: asks the server for a full snapshot.
    void on_unknown_base();

    /// Closes the connection.
    void leave(Ending ending);

    /// Returns the datagrams to send now.
    [[nodiscard]] std::vector<Outbox::Bytes> take();
    /// The time of the next on_time(), unless something arrives before.
    [[nodiscard]] Timestamp next_due() const;

    [[nodiscard]] Ending ending() const { return ending_; }

    [[nodiscard]] bool over() const { return ending_ != Ending::none; }

    /// True if the client was in the game.
    [[nodiscard]] bool entered() const { return entered_.has_value(); }

    /// The server's reason for closing the connection.
    [[nodiscard]] const std::string& reason() const { return reason_; }

    [[nodiscard]] const ClientTally& tally() const { return tally_; }

    [[nodiscard]] std::uint64_t resent() const { return outbox_.resent(); }

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
    void prove_address(snapshot::Tick secret);
    void check_time();
    void play();
    void send_input(std::int32_t ack, std::int32_t intended, std::span<const std::byte> pressed);
    void keep_acknowledging();
    void ping();
    [[nodiscard]] Timestamp due(const ScriptStep& step) const;

    void end(Ending ending) { ending_ = over() ? ending_ : ending; }

    const ClientScript* script_;
    Options options_;
    Outbox outbox_;
    Phase phase_ = Phase::waiting;
    Ending ending_ = Ending::none;
    std::string reason_;
    Timestamp now_;
    Timestamp start_;
    Timestamp heard_;
    bool answered_ = false;   ///< the server has sent something
    Timestamp connected_ = 0; ///< time of the last CONNECT
    std::optional<Timestamp> entered_;
    bool ready_ = false; ///< the client has answered the server's anti-spoof prelude
    std::optional<snapshot::Tick> newest_; ///< tick of the newest snapshot
    int bad_ = 0;                          ///< bad snapshots minus good ones
    std::size_t next_ = 0;                 ///< index of the next step
    Timestamp input_sent_ = 0;
    std::vector<std::byte> pressed_; ///< what the last input pressed
    Timestamp pinged_ = 0;
    bool ping_open_ = false;
    ClientTally tally_;
};

} // namespace tw::replay
