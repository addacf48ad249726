#pragma once

#include "proxy/inspect/session.h"
#include "proxy/wire/packet.h"
#include "tests/support/record_log.h"
#include "tests/support/snapshot_messages.h"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::test {

/// Finds what the test tells it to find.
class FakeMaps final : public inspect::MapSource {
  public:
    inspect::FoundMap find(const inspect::MapAnnouncement& /*announcement*/) override {
        return answer;
    }

    inspect::FoundMap keep(const inspect::MapAnnouncement& /*announcement*/,
                           std::vector<std::byte> /*bytes*/) override {
        inspect::FoundMap kept = answer;
        kept.from_wire = true;
        return kept;
    }

    inspect::FoundMap find_kept(const inspect::MapAnnouncement& /*announcement*/) override {
        return kept_elsewhere_;
    }

    /// Another session's client downloaded a map.
    void keep_elsewhere(inspect::FoundMap map) {
        kept_elsewhere_ = std::move(map);
        kept_elsewhere_.from_wire = true;
        count_kept();
    }

    inspect::FoundMap answer;

  private:
    inspect::FoundMap kept_elsewhere_;
};

/// One chunk of a packet.
struct Piece {
    Bytes message;
    bool vital = false;
    bool resend = false;
    std::optional<std::uint16_t> sequence{}; ///< instead of the next one
};

[[nodiscard]] Piece vital(const MessageBuilder& message);
[[nodiscard]] Piece vital(Bytes message);
[[nodiscard]] Piece plain(const MessageBuilder& message);
[[nodiscard]] Piece plain(Bytes message);
/// The same chunk as sent before, with the resend bit.
[[nodiscard]] Piece again(Piece piece, std::uint16_t sequence);

/// What a packet says other than what its sender honestly would.
struct Odd {
    std::optional<int> ack{};            ///< this far from the honest one
    std::optional<std::uint8_t> count{}; ///< number of chunks in the header
    std::optional<Bytes> behind{};       ///< instead of the token
    std::uint8_t flags = 0;              ///< on top, in the first byte
};

/// A client and a server that send what the script says, and a session that looks on. Every
/// datagram comes 10 ms after the one before it.
class SessionScript {
  public:
    explicit SessionScript(inspect::Options options = {});
    /// Records go to `sink`, and none to log().
    SessionScript(inspect::Options options, record::RecordSink& sink);

    static constexpr wire::Token kToken{0xad, 0x70, 0x60, 0x4e};
    static constexpr wire::Token kClientToken{0x01, 0x02, 0x03, 0x04}; ///< of a 0.6.5 client

    void feed(wire::Direction direction, std::span<const std::byte> datagram);

    /// Nothing happens for so long, in nanoseconds.
    void pause(record::Timestamp time) { time_ += time; }

    void gap(std::uint64_t lost);
    /// The client's next input is rewritten on its way.
    void resync();
    void close(std::string_view reason);

    /// Handshakes. The peers start their sequences anew.
    void join_ddnet();
    void join_ddnet_with(wire::Token token);
    void join_vanilla();
    void join_header_token();
    /// A connection of 0.7, to its ACCEPT, and its end by the client. `ddnet`: the server is one,
    /// as it shows by its ACCEPT.
    void join_seven(bool ddnet = false);
    void close_seven();

    static constexpr wire::Token kSevenClient{0x11, 0x22, 0x33, 0x44};
    static constexpr wire::Token kSevenServer{0x55, 0x66, 0x77, 0x88};

    [[nodiscard]] wire::Dialect dialect() const { return dialect_; }

    /// A message of the dialect that is spoken.
    [[nodiscard]] MessageBuilder message_of(std::string_view name) const;
    /// No handshake passes, yet packets look as if this had been one.
    void assume_ddnet();

    /// A CLOSE or KEEPALIVE has the honest ack unless it says another.
    void control(wire::Direction direction, wire::ControlSpec spec);
    /// Builds the next packet of one side: sequences, ack and token as the side has them.
    [[nodiscard]] Bytes pack(wire::Direction direction, const std::vector<Piece>& pieces);
    /// A packet that is not what it should be. Sequences stay as they were: the next honest vital
    /// chunk has the same one again.
    [[nodiscard]] Bytes pack_odd(wire::Direction direction, const std::vector<Piece>& pieces,
                                 const Odd& odd);
    /// Sequence of the next honest vital chunk.
    [[nodiscard]] std::uint16_t next_sequence(wire::Direction direction);
    void tell(wire::Direction direction, const std::vector<Piece>& pieces);
    void tell(wire::Direction direction, const MessageBuilder& vital_message);
    /// The receiver gets it, and the session does not see it.
    void tell_unseen(wire::Direction direction, const MessageBuilder& vital_message);

    /// From map change to entering the game.
    void enter(std::string_view map = "dm1");

    /// The server's snapshot of a tick; it remembers them and builds on the one named.
    void snap(snapshot::Tick tick, snapshot::Tick base, const Items& items);
    /// The same as a datagram that does not pass (yet).
    [[nodiscard]] Bytes snap_datagram(snapshot::Tick tick, snapshot::Tick base, const Items& items);

    [[nodiscard]] RecordLog& log() { return *log_; }

    [[nodiscard]] FakeMaps& maps() { return *maps_; }

    [[nodiscard]] const record::SessionStats& stats() const { return session_->current(); }

    [[nodiscard]] const record::DirectionStats& stats(wire::Direction direction) const {
        return stats().directions[direction == wire::Direction::s2c ? 1 : 0];
    }

    [[nodiscard]] inspect::Session& session() { return *session_; }

    [[nodiscard]] record::Timestamp now() const { return time_; }

    wire::Compression compression = wire::Compression::never;

  private:
    SessionScript(const inspect::Options& options, record::RecordSink* sink);

    struct Peer {
        std::uint16_t sent = 0;     ///< sequence of its last vital chunk
        std::uint16_t received = 0; ///< what it says as ack
    };

    [[nodiscard]] Peer& peer(wire::Direction sender) {
        return peers_[sender == wire::Direction::s2c ? 1 : 0];
    }

    /// The other side has what `direction`'s sender sent since `before`.
    void receive(wire::Direction direction, std::uint16_t before);

    void restart(std::optional<wire::Token> token, std::optional<wire::Token> header_token);

    static constexpr record::Timestamp kStart = 1'700'000'000'000'000'000;

    std::unique_ptr<RecordLog> log_;
    std::unique_ptr<FakeMaps> maps_;
    std::unique_ptr<inspect::Workspace> workspace_;
    std::unique_ptr<inspect::Session> session_;
    record::Timestamp time_ = kStart;
    std::array<Peer, 2> peers_;
    std::optional<wire::Token> token_;
    std::optional<wire::Token> header_token_;
    wire::Dialect dialect_ = wire::Dialect::six;
    std::map<snapshot::Tick, Items> sent_snapshots_;
};

} // namespace tw::test
