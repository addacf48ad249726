#include "proxy/replay/outbox.h"

#include "proxy/wire/chunk.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tw::replay {

namespace {

constexpr record::Timestamp kOutboxMillisecond = 1'000'000;
/// As DDNet's clients do (protocol sheet, section 4.4).
constexpr record::Timestamp kKeepalive = 1000 * kOutboxMillisecond;
constexpr record::Timestamp kResendAfter = 1000 * kOutboxMillisecond;
/// A server that asks again and again gets no flood for it.
constexpr record::Timestamp kAnswerEvery = 100 * kOutboxMillisecond;
/// Half of the sequences: more could not be told from old ones.
constexpr std::size_t kMaxUnacked = wire::kSequenceModulus / 2 - 1;
/// What the oldest receivers have room for, with the token.
constexpr std::size_t kMaxChunks = 1390 - wire::kTokenSize;
constexpr std::size_t kChunkHeader = 3;
/// Behind an announced token, so that no answer is longer than its question (0.7 sheet, 1.4).
constexpr std::size_t kSevenPadding = 508;

} // namespace

bool Outbox::vital(std::span<const std::byte> message, record::Timestamp now) {
    if (unacked_.size() >= kMaxUnacked) {
        return false;
    }
    sequence_ = static_cast<std::uint16_t>((sequence_ + 1) % wire::kSequenceModulus);
    unacked_.push_back({.sequence = sequence_,
                        .message = {message.begin(), message.end()},
                        .first_sent = now,
                        .sent = now});
    append(true, sequence_, false, message);
    return true;
}

void Outbox::plain(std::span<const std::byte> message) {
    append(false, 0, false, message);
}

void Outbox::append(bool vital, std::uint16_t sequence, bool resend,
                    std::span<const std::byte> message) {
    if (chunks_.size() + message.size() + kChunkHeader > kMaxChunks ||
        num_chunks_ == std::numeric_limits<std::uint8_t>::max()) {
        pack();
    }
    wire::append_chunk(chunks_, vital, sequence, resend, message, dialect_);
    ++num_chunks_;
}

wire::ControlSpec Outbox::control_of(wire::ControlKind kind) const {
    const bool connect = kind == wire::ControlKind::connect;
    if (dialect_ == wire::Dialect::six) {
        return {.kind = kind, .ack = ack_, .token = connect ? wire::kTokenUnknown : token_};
    }
    const bool announces = connect || kind == wire::ControlKind::token;
    return {.kind = kind,
            .ack = ack_,
            .token = announces ? std::optional{own_token_} : std::nullopt,
            .seven_token = token_.value_or(wire::kTokenUnknown)};
}

void Outbox::control(wire::ControlKind kind, record::Timestamp now,
                     std::optional<std::string_view> reason) {
    pack();
    wire::ControlSpec spec = control_of(kind);
    spec.reason = reason;
    packets_.push_back(wire::encode_control(spec));
    if (dialect_ == wire::Dialect::seven && spec.token) {
        packets_.back().resize(packets_.back().size() + kSevenPadding);
    }
    sent_ = now;
}

void Outbox::on_ack(std::uint16_t ack) {
    const auto acked = std::find_if(unacked_.begin(), unacked_.end(),
                                    [ack](const Vital& chunk) { return chunk.sequence == ack; });
    if (acked != unacked_.end()) {
        unacked_.erase(unacked_.begin(), acked + 1);
    }
}

void Outbox::on_resend_request(record::Timestamp now) {
    if (now - answered_ < kAnswerEvery) {
        return;
    }
    answered_ = now;
    for (Vital& chunk : unacked_) {
        resend(chunk, now);
    }
}

void Outbox::resend(Vital& chunk, record::Timestamp now) {
    chunk.sent = now;
    ++resent_;
    append(true, chunk.sequence, true, chunk.message);
}

void Outbox::on_time(record::Timestamp now) {
    if (!unacked_.empty() && now - unacked_.front().sent >= kResendAfter) {
        resend(unacked_.front(), now);
    }
    if (num_chunks_ == 0 && packets_.empty() && now - sent_ >= kKeepalive) {
        control(wire::ControlKind::keepalive, now);
    }
}

void Outbox::pack() {
    if (num_chunks_ == 0 && !ask_resend_) {
        return;
    }
    wire::PacketSpec spec{.ack = ack_,
                          .resend = std::exchange(ask_resend_, false),
                          .num_chunks = std::exchange(num_chunks_, 0),
                          .chunks = chunks_,
                          .compression = wire::Compression::if_shorter,
                          .dialect = dialect_};
    (dialect_ == wire::Dialect::six ? spec.token : spec.header_token) = token_;
    packets_.push_back(wire::encode_packet(spec));
    chunks_.clear();
}

void Outbox::flush(record::Timestamp now) {
    pack();
    if (!packets_.empty()) {
        sent_ = now;
    }
}

std::vector<Outbox::Bytes> Outbox::take() {
    return std::exchange(packets_, {});
}

} // namespace tw::replay
