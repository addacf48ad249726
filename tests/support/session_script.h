#pragma once

#include "proxy/inspect/session.h"
#include "proxy/wire/packet.h"
#include "tests/support/record_log.h"
#include "tests/support/snapshot_messages.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::test {

inline constexpr auto kC2s = wire::Direction::c2s;
inline constexpr auto kS2c = wire::Direction::s2c;
/// A token that belongs to no connection.
inline constexpr wire::Token kOtherToken{9, 9, 9, 9};

/// A source of maps that returns the map in `answer`.
class FakeMaps final : public inspect::MapSource {
  public:
    inspect::MapSearchResult find_map(const inspect::MapAnnouncement& /*announcement*/) override {
        return answer;
    }

    inspect::MapSearchResult store_map(const inspect::MapAnnouncement& /*announcement*/,
                                       std::vector<std::byte> /*bytes*/) override {
        inspect::MapSearchResult kept = answer;
        kept.is_from_download = true;
        return kept;
    }

    inspect::MapSearchResult
    find_stored_map(const inspect::MapAnnouncement& /*announcement*/) override {
        return kept_elsewhere_;
    }

    /// Sets a map that another session's client has downloaded.
    void keep_elsewhere(inspect::MapSearchResult map) {
        kept_elsewhere_ = std::move(map);
        kept_elsewhere_.is_from_download = true;
        count_stored_map();
    }

    inspect::MapSearchResult answer;

  private:
    inspect::MapSearchResult kept_elsewhere_;
};

/// Begins a map change of 0.6 to a map of 100 bytes.
[[nodiscard]] MessageBuilder map_change(std::string_view name);
/// Begins an input of 0.6 for tick `intended`.
[[nodiscard]] MessageBuilder input(snapshot::Tick acked, snapshot::Tick intended);
[[nodiscard]] MessageBuilder rcon_line(std::string_view text);

/// A chunk of a packet.
struct Piece {
    Bytes message;
    bool vital = false;
    bool resend = false;
    std::optional<std::uint16_t> sequence{}; ///< sequence to send instead of the next one
};

[[nodiscard]] Piece vital(const MessageBuilder& message);
[[nodiscard]] Piece vital(Bytes message);
[[nodiscard]] Piece non_vital(const MessageBuilder& message);
[[nodiscard]] Piece non_vital(Bytes message);
/// Returns a chunk that was sent before, with the resend bit.
[[nodiscard]] Piece resend_piece(Piece piece, std::uint16_t sequence);

/// Deviations of a packet from what a correct sender would send.
struct Deviations {
    std::optional<int> ack{};            ///< offset from the correct acknowledgement
    std::optional<std::uint8_t> count{}; ///< number of chunks in the header
    std::optional<Bytes> behind{};       ///< bytes at the packet's end instead of the token
    std::uint8_t flags = 0;              ///< flags to add in the first byte
};

/// A client and a server that send what the script says, and a session that inspects it. Every
/// datagram is 10 ms after the previous one.
class SessionScript {
  public:
    explicit SessionScript(inspect::Options options = {});
    /// Records go to `sink` instead of log().
    SessionScript(inspect::Options options, record::RecordSink& sink);

    static constexpr wire::Token kToken{0xad, 0x70, 0x60, 0x4e};
    static constexpr wire::Token kClientToken{0x01, 0x02, 0x03,
                                              0x04}; ///< the token of a 0.6.5 client

    /// Sends a datagram as it is.
    void send_datagram(wire::Direction direction, std::span<const std::byte> datagram);
    /// Sends a packet as it is, except that it gets the connection's token.
    void send_packet(wire::Direction direction, wire::PacketSpec spec);

    /// Advances the time by this many nanoseconds.
    void pause(record::Timestamp time) { time_ += time; }

    /// Reports to the session that it did not get this many datagrams.
    void lose_copies(std::uint64_t lost);
    /// The relay rewrites the client's next input.
    void resync();
    void close(std::string_view reason);

    /// Handshakes, after which the peers' sequences start again.
    void join_ddnet();
    void join_ddnet_with(wire::Token token);
    void join_vanilla();
    void join_header_token();
    /// The handshake of a 0.7 connection up to ACCEPT, and its end by the client. `ddnet`: the
    /// ACCEPT is that of a DDNet server.
    void join_seven(bool ddnet = false);
    void close_seven();

    static constexpr wire::Token kSevenClient{0x11, 0x22, 0x33, 0x44};
    static constexpr wire::Token kSevenServer{0x55, 0x66, 0x77, 0x88};

    [[nodiscard]] wire::Dialect dialect() const { return dialect_; }

    /// Begins a message in the connection's dialect.
    [[nodiscard]] MessageBuilder message_of(std::string_view name) const;
    /// Makes later packets look like those of a DDNet connection, without a handshake.
    void assume_ddnet();

    /// Sends a control packet. A CLOSE or KEEPALIVE has the correct ack unless `spec` has another.
    void control(wire::Direction direction, wire::ControlSpec spec);
    /// Builds the next packet of one side, with its sequences, ack and token.
    [[nodiscard]] Bytes pack(wire::Direction direction, const std::vector<Piece>& pieces);
    /// Builds an incorrect packet. The side's sequence is not incremented, so the next correct
    /// vital chunk has the same one.
    [[nodiscard]] Bytes pack_deviating(wire::Direction direction, const std::vector<Piece>& pieces,
                                       const Deviations& odd);
    /// Returns the sequence of the next correct vital chunk.
    [[nodiscard]] std::uint16_t next_sequence(wire::Direction direction);
    /// Sends a packet with these chunks, or with one vital message.
    void send(wire::Direction direction, const std::vector<Piece>& pieces);
    void send(wire::Direction direction, const MessageBuilder& vital_message);
    /// Sends a message that reaches the receiver, but not the session.
    void send_unseen(wire::Direction direction, const MessageBuilder& vital_message);

    /// Sends the messages from the map change to entering the game.
    void enter_game(std::string_view map = "dm1");

    /// Sends a server's messages with this checksum and body of a delta.
    void snap_body(snapshot::Tick tick, snapshot::Tick base, std::int32_t crc, const Bytes& body);
    /// Sends the server's snapshot of a tick as a delta from the earlier snapshot `base`.
    void snap(snapshot::Tick tick, snapshot::Tick base, const Items& items);
    /// Like snap(), but returns the datagram instead of sending it.
    [[nodiscard]] Bytes snap_datagram(snapshot::Tick tick, snapshot::Tick base, const Items& items);

    [[nodiscard]] RecordLog& log() { return *log_; }

    [[nodiscard]] FakeMaps& maps() { return *maps_; }

    [[nodiscard]] record::SessionStats stats() const { return session_->totals(); }

    [[nodiscard]] record::DirectionStats stats(wire::Direction direction) const {
        return stats().directions[direction == wire::Direction::s2c ? 1 : 0];
    }

    [[nodiscard]] inspect::Session& session() { return *session_; }

    [[nodiscard]] record::Timestamp now() const { return time_; }

    wire::Compression compression = wire::Compression::never;

  private:
    SessionScript(const inspect::Options& options, record::RecordSink* sink);

    struct Peer {
        std::uint16_t sent = 0;     ///< sequence of its last vital chunk
        std::uint16_t received = 0; ///< sequence that it acknowledges
    };

    [[nodiscard]] Peer& peer(wire::Direction sender) {
        return peers_[sender == wire::Direction::s2c ? 1 : 0];
    }

    /// Marks the chunks that were sent in this direction since `before` as received.
    void receive(wire::Direction direction, std::uint16_t before);

    void restart(std::optional<wire::Token> token, std::optional<wire::Token> header_token);

    static constexpr record::Timestamp kStart = 1'700'000'000'000'000'000;

    std::unique_ptr<RecordLog> log_;
    std::unique_ptr<FakeMaps> maps_;
    std::unique_ptr<inspect::DecodeBuffers> workspace_;
    std::unique_ptr<inspect::Session> session_;
    record::Timestamp time_ = kStart;
    std::array<Peer, 2> peers_;
    std::optional<wire::Token> token_;
    std::optional<wire::Token> header_token_;
    wire::Dialect dialect_ = wire::Dialect::six;
    std::map<snapshot::Tick, Items> sent_snapshots_;
};

/// Returns a session behind the handshake with a DDNet server.
[[nodiscard]] SessionScript joined_session(inspect::Options options = {});
/// Returns a session that plays on a DDNet server, with an empty log.
[[nodiscard]] SessionScript playing_session();

} // namespace tw::test
