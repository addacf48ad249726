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

/// The sending side of a connection: gathers messages into packets, with the token, an
/// acknowledgement, and sequences for vital ones, which it sends again until they are acknowledged.
class Outbox {
  public:
    using Bytes = std::vector<std::byte>;

    explicit Outbox(wire::Dialect dialect) : dialect_{dialect} {}

    /// 0.6: DDNet's, of the connection. 0.7: the server's, which every packet carries.
    void set_token(std::optional<wire::Token> token) { token_ = token; }

    /// 0.7: the client's own, which it announces.
    void set_own_token(const wire::Token& token) { own_token_ = token; }

    [[nodiscard]] const std::optional<wire::Token>& token() const { return token_; }

    /// False: too much is not acknowledged yet. Precondition: `message` fits into a chunk.
    bool vital(std::span<const std::byte> message, record::Timestamp now);
    void plain(std::span<const std::byte> message);
    void control(wire::ControlKind kind, record::Timestamp now,
                 std::optional<std::string_view> reason = std::nullopt);

    /// The last vital chunk of the peer that came in order.
    void accept(std::uint16_t sequence) { ack_ = sequence; }

    /// The peer's chunks have a gap.
    void ask_resend() { ask_resend_ = true; }

    void on_ack(std::uint16_t ack);
    /// The peer has a gap.
    void on_resend_request(record::Timestamp now);
    /// Sends again what waits for long, and a keepalive where nothing was sent.
    void on_time(record::Timestamp now);
    /// Makes packets of what was gathered.
    void flush(record::Timestamp now);

    /// What is to be sent now.
    [[nodiscard]] std::vector<Bytes> take();

    /// Chunks that were sent again.
    [[nodiscard]] std::uint64_t resent() const { return resent_; }

    /// Since when the oldest vital chunk waits for its acknowledgement.
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
    std::uint16_t sequence_ = 0; ///< of the last vital chunk
    std::uint16_t ack_ = 0;
    bool ask_resend_ = false;
    std::deque<Vital> unacked_;
    Bytes chunks_; ///< gathered
    std::uint8_t num_chunks_ = 0;
    std::vector<Bytes> packets_;
    record::Timestamp sent_ = 0;
    record::Timestamp answered_ = 0; ///< a resend request
    std::uint64_t resent_ = 0;
};

/// How a client's part ended.
enum class Ending : std::uint8_t {
    none, ///< not yet
    finished,
    interrupted, ///< the run was ended before
    unanswered,  ///< nobody answered its CONNECT
    refused,     ///< the server closed, or never let it in, before it was in the game
    closed,      ///< the server closed
    silent,      ///< the server stopped answering, or acknowledges nothing
};

/// What a client did besides what its inspector counts.
struct ClientTally {
    std::uint64_t inputs = 0;
    std::uint64_t messages = 0;
    std::uint64_t skipped = 0; ///< inputs that found no snapshot to build on
    std::uint64_t pings = 0;
    record::Spread round_trip_us{};
};

/// One client that plays a script: its part of the protocol, without sockets and clocks. What comes
/// from the server it is told by whoever inspects the connection, so that it takes what a receiver
/// takes.
///
/// Source: 0.7 sheet, section 1.6 (handshake); protocol sheet, sections 1.5 (token), 4.4 (resends), 6.7 and 9.1 (acknowledgements,
///         inputs), 9.3 (join), 10 item 3 (anti-spoof prelude).
class ReplayClient {
  public:
    using Timestamp = record::Timestamp;

    struct Options {
        std::string password{};
        double speed = 1;
        Timestamp duration = 0; ///< nanoseconds from its start; 0: as long as the script is
        Timestamp timeout = 10'000'000'000;
        std::array<std::byte, 16> connection_id{}; ///< its own, not the captured one's
        wire::Token token{};                       ///< of 0.7: its own
    };

    /// It begins at `start`. `script` has to outlive it.
    ReplayClient(const ClientScript& script, Options options, Timestamp start);

    /// Does what is due.
    void on_time(Timestamp now);

    // What the server sends; `on_packet` first, then its chunks. Time is that of the last on_time.
    void on_control(const wire::Packet& packet, const wire::Control& control);
    void on_packet(std::uint16_t ack, bool resend);
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken, const wire::MessageHead* head);
    void on_snapshot(snapshot::Tick tick);
    /// A snapshot that does not become what the server says.
    void on_bad_snapshot();
    /// A snapshot on one that is not there: the server is asked to start over.
    void on_unknown_base();

    /// Says goodbye.
    void leave(Ending ending);

    /// Datagrams to be sent now.
    [[nodiscard]] std::vector<Outbox::Bytes> take();
    /// When on_time has something to do, unless something comes before.
    [[nodiscard]] Timestamp next_due() const;

    [[nodiscard]] Ending ending() const { return ending_; }

    [[nodiscard]] bool over() const { return ending_ != Ending::none; }

    /// It was in the game.
    [[nodiscard]] bool entered() const { return entered_.has_value(); }

    /// What the server said when it closed.
    [[nodiscard]] const std::string& reason() const { return reason_; }

    [[nodiscard]] const ClientTally& tally() const { return tally_; }

    [[nodiscard]] std::uint64_t resent() const { return outbox_.resent(); }

  private:
    enum class Phase : std::uint8_t { waiting, connecting, joining, playing };

    void connect();
    void hear();
    void on_control_of_six(const wire::Control& control);
    void on_control_of_seven(const wire::Packet& packet, const wire::Control& control);
    void on_close(const wire::Control& control);
    void introduce();
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
    bool answered_ = false;   ///< the server said anything at all
    Timestamp connected_ = 0; ///< the last CONNECT
    std::optional<Timestamp> entered_;
    bool ready_ = false;                   ///< answered the server's prelude
    std::optional<snapshot::Tick> newest_; ///< snapshot
    int bad_ = 0;                          ///< snapshots in excess of good ones
    std::size_t next_ = 0;                 ///< step
    Timestamp input_sent_ = 0;
    std::vector<std::byte> pressed_; ///< by the last input
    Timestamp pinged_ = 0;
    bool ping_open_ = false;
    ClientTally tally_;
};

} // namespace tw::replay
