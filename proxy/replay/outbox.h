#pragma once

#include "proxy/record/records.h"
#include "proxy/wire/encode.h"
#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
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

} // namespace tw::replay
