#pragma once

#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/replay/client_script.h"
#include "proxy/replay/outbox.h"
#include "proxy/wire/chunk.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::replay {

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
