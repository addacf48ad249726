#include "proxy/replay/replay_client.h"

#include "proxy/wire/bodies.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tw::replay {

namespace {

constexpr record::Timestamp kMillisecond = 1'000'000;
/// The interval of keepalives, as in DDNet's clients.
constexpr record::Timestamp kKeepaliveInterval = 1000 * kMillisecond;
/// A vital chunk is sent again if it was not acknowledged for this time.
constexpr record::Timestamp kResendTime = 1000 * kMillisecond;
/// The shortest time between two resends on request. Repeated requests therefore cause no flood.
constexpr record::Timestamp kMinResendInterval = 100 * kMillisecond;
/// The maximum number of unacknowledged chunks: less than half of the sequence numbers. With more,
/// a new chunk could not be distinguished from an old one.
constexpr std::size_t kMaxUnackedChunks = wire::kSequenceModulus / 2 - 1;
/// The maximum number of chunk bytes in a packet. The oldest servers accept at most 1390 bytes of
/// chunks and token.
constexpr std::size_t kMaxPacketBytes = 1390 - wire::kTokenSize;
constexpr std::size_t kChunkHeaderBytes = 3;
/// The number of padding bytes after the client's token in a request. They make the request at
/// least as long as its answer, so that servers cannot be used to amplify traffic.
constexpr std::size_t kPaddingBytes = 508;

using wire::ControlKind;
using wire::Dialect;
using wire::MessageId;

constexpr record::Timestamp kConnectInterval = 500 * kMillisecond;
constexpr record::Timestamp kPingInterval = 1000 * kMillisecond;
/// The interval at which a client without input acknowledges snapshots.
constexpr record::Timestamp kIdleInputInterval = 1000 * kMillisecond;
/// Inputs that are later than this, for example after a map change, are not sent, because real
/// clients send no bursts of inputs.
constexpr record::Timestamp kMaxInputDelay = 200 * kMillisecond;
/// The longest time between two calls of on_time().
constexpr record::Timestamp kMaxCallInterval = 50 * kMillisecond;
/// The client must be in the game within this many times Options::timeout.
constexpr int kJoinTimeoutFactor = 3;
/// After more wrong snapshots than this, a DDNet client requests a full snapshot.
constexpr int kMaxWrongSnapshots = 10;
/// The tick that a client without a snapshot acknowledges.
constexpr std::int32_t kNoTick = -1;
constexpr std::size_t kMaxChunkBytes = 1023;
constexpr std::size_t kUuidBytes = 16;

/// Adds the lead to a tick without overflow. Ticks from the server may have any value.
std::int32_t add_lead(snapshot::Tick tick, std::int32_t lead) {
    return static_cast<std::int32_t>(std::min<std::int64_t>(
        std::int64_t{tick} + lead, std::numeric_limits<std::int32_t>::max()));
}

} // namespace

bool PacketSender::add_vital_message(std::span<const std::byte> message, record::Timestamp now) {
    if (unacked_.size() >= kMaxUnackedChunks) {
        return false;
    }
    sequence_ = static_cast<std::uint16_t>((sequence_ + 1) % wire::kSequenceModulus);
    unacked_.push_back({.sequence = sequence_,
                        .message = {message.begin(), message.end()},
                        .first_sent = now,
                        .last_sent = now});
    append_chunk(true, sequence_, false, message);
    return true;
}

void PacketSender::add_nonvital_message(std::span<const std::byte> message) {
    append_chunk(false, 0, false, message);
}

void PacketSender::append_chunk(bool vital, std::uint16_t sequence, bool resend,
                                std::span<const std::byte> message) {
    if (chunks_.size() + message.size() + kChunkHeaderBytes > kMaxPacketBytes ||
        num_chunks_ == std::numeric_limits<std::uint8_t>::max()) {
        pack_chunks();
    }
    wire::append_chunk(chunks_, vital, sequence, resend, message, dialect_);
    ++num_chunks_;
}

wire::ControlSpec PacketSender::make_control(wire::ControlKind kind) const {
    const bool connect = kind == wire::ControlKind::connect;
    if (dialect_ == wire::Dialect::six) {
        return {.kind = kind,
                .ack = acknowledged_sequence,
                .token = connect ? wire::kTokenUnknown : token};
    }
    const bool announces = connect || kind == wire::ControlKind::token;
    return {.kind = kind,
            .ack = acknowledged_sequence,
            .token = announces ? std::optional{own_token} : std::nullopt,
            .seven_token = token.value_or(wire::kTokenUnknown)};
}

void PacketSender::add_control(wire::ControlKind kind, record::Timestamp now) {
    pack_chunks();
    const wire::ControlSpec spec = make_control(kind);
    packets_.push_back(wire::encode_control(spec));
    if (dialect_ == wire::Dialect::seven && spec.token) {
        packets_.back().resize(packets_.back().size() + kPaddingBytes);
    }
    last_send_time_ = now;
}

void PacketSender::on_ack(std::uint16_t ack) {
    const auto acked = std::ranges::find_if(
        unacked_, [ack](const UnackedChunk& chunk) { return chunk.sequence == ack; });
    if (acked != unacked_.end()) {
        unacked_.erase(unacked_.begin(), acked + 1);
    }
}

void PacketSender::on_resend_request(record::Timestamp now) {
    if (now - last_resend_time_ < kMinResendInterval) {
        return;
    }
    last_resend_time_ = now;
    for (UnackedChunk& chunk : unacked_) {
        resend_chunk(chunk, now);
    }
}

void PacketSender::resend_chunk(UnackedChunk& chunk, record::Timestamp now) {
    chunk.last_sent = now;
    ++counts_->resent_chunks;
    append_chunk(true, chunk.sequence, true, chunk.message);
}

void PacketSender::on_time(record::Timestamp now) {
    if (!unacked_.empty() && now - unacked_.front().last_sent >= kResendTime) {
        resend_chunk(unacked_.front(), now);
    }
    if (num_chunks_ == 0 && packets_.empty() && now - last_send_time_ >= kKeepaliveInterval) {
        add_control(wire::ControlKind::keepalive, now);
    }
}

void PacketSender::pack_chunks() {
    if (num_chunks_ == 0 && !requests_resend) {
        return;
    }
    wire::PacketSpec spec{.ack = acknowledged_sequence,
                          .resend = std::exchange(requests_resend, false),
                          .num_chunks = std::exchange(num_chunks_, 0),
                          .chunks = chunks_,
                          .compression = wire::Compression::if_shorter,
                          .dialect = dialect_};
    (dialect_ == wire::Dialect::six ? spec.token : spec.header_token) = token;
    packets_.push_back(wire::encode_packet(spec));
    chunks_.clear();
}

void PacketSender::flush(record::Timestamp now) {
    pack_chunks();
    if (!packets_.empty()) {
        last_send_time_ = now;
    }
}

std::vector<Bytes> PacketSender::take_packets() {
    return std::exchange(packets_, {});
}

ReplayClient::ReplayClient(const ClientScript& script, Options options, Timestamp start,
                           ClientCounts& counts)
    : script_{&script}, options_{std::move(options)}, sender_{script.dialect, counts}, now_{start},
      start_{start}, last_packet_time_{start}, last_input_{make_idle_input()}, counts_{&counts} {
    sender_.own_token = options_.token;
}

void ReplayClient::on_time(Timestamp now) {
    now_ = now;
    if (has_ended() || now < start_) {
        return;
    }
    if (phase_ == Phase::waiting) {
        phase_ = Phase::connecting;
        last_packet_time_ = now;
    }
    check_timeouts();
    if (has_ended()) {
        return;
    }
    if (phase_ == Phase::connecting) {
        connect();
        return;
    }
    if (phase_ == Phase::playing) {
        play_steps();
        repeat_last_input();
        send_ping();
    }
    sender_.on_time(now_);
}

void ReplayClient::check_timeouts() {
    const auto waiting = sender_.oldest_unacknowledged_since();
    if (options_.duration != 0 && now_ - start_ >= options_.duration) {
        close_connection(game_entry_time_       ? ClientEnding::finished
                         : has_server_answered_ ? ClientEnding::refused
                                                : ClientEnding::unanswered);
    } else if (phase_ == Phase::connecting && now_ - last_packet_time_ >= options_.timeout) {
        set_ending_once(ClientEnding::unanswered);
    } else if (now_ - last_packet_time_ >= options_.timeout ||
               (waiting && now_ - *waiting >= options_.timeout)) {
        close_connection(ClientEnding::silent);
    } else if (!game_entry_time_ && now_ - start_ >= kJoinTimeoutFactor * options_.timeout) {
        close_connection(ClientEnding::refused);
    }
}

void ReplayClient::connect() {
    if (last_connect_time_ == 0 || now_ - last_connect_time_ >= kConnectInterval) {
        last_connect_time_ = now_;
        const bool asks = script_->dialect == Dialect::seven && !sender_.token;
        sender_.add_control(asks ? ControlKind::token : ControlKind::connect, now_);
    }
}

void ReplayClient::remember_server_packet() {
    last_packet_time_ = now_;
    has_server_answered_ = true;
}

void ReplayClient::on_control(const wire::Packet& packet, const wire::Control& control) {
    if (packet.dialect != script_->dialect || packet.seven_header) {
        return;
    }
    if (script_->dialect == Dialect::six) {
        on_control_0_6(control);
    } else {
        on_control_0_7(packet, control);
    }
}

void ReplayClient::on_control_0_6(const wire::Control& control) {
    const bool ours = !sender_.token || control.token == sender_.token;
    if (phase_ == Phase::connecting && control.kind == ControlKind::connectaccept &&
        !control.vanilla_token) {
        remember_server_packet();
        if (control.has_token_magic) {
            sender_.token = control.token;
        }
        sender_.add_control(ControlKind::accept, now_);
        send_info();
    } else if (control.kind == ControlKind::keepalive && ours) {
        remember_server_packet();
    } else if (control.kind == ControlKind::close && (phase_ == Phase::connecting || ours)) {
        on_close(control);
    }
}

void ReplayClient::on_control_0_7(const wire::Packet& packet, const wire::Control& control) {
    if (packet.header_token != options_.token) {
        return;
    }
    const bool connecting = phase_ == Phase::connecting;
    if (connecting && control.kind == ControlKind::token && control.token) {
        remember_server_packet();
        sender_.token = control.token;
        last_connect_time_ = 0; // reconnects at once
        connect();
    } else if (connecting && control.kind == ControlKind::accept && sender_.token) {
        remember_server_packet();
        send_info();
    } else if (control.kind == ControlKind::keepalive) {
        remember_server_packet();
    } else if (control.kind == ControlKind::close) {
        on_close(control);
    }
}

void ReplayClient::on_close(const wire::Control& control) {
    close_reason_ = control.reason;
    set_ending_once(game_entry_time_ ? ClientEnding::closed : ClientEnding::refused);
}

void ReplayClient::send_info() {
    phase_ = Phase::joining;
    if (script_->version_message.size() >= 1 + 2 * kUuidBytes) {
        Bytes version = script_->version_message;
        std::ranges::copy(options_.connection_id, version.begin() + 1 + kUuidBytes);
        sender_.add_vital_message(version, now_);
    }
    sender_.add_vital_message(make_info_message(*script_, options_.password), now_);
}

void ReplayClient::on_packet(std::uint16_t ack, bool resend) {
    if (phase_ == Phase::waiting || phase_ == Phase::connecting) {
        return;
    }
    remember_server_packet();
    sender_.on_ack(ack);
    if (resend) {
        sender_.on_resend_request(now_);
    }
}

void ReplayClient::on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                            const wire::MessageHeader* head) {
    if (phase_ == Phase::waiting || phase_ == Phase::connecting) {
        return;
    }
    if (taken == wire::VitalClass::gap) {
        sender_.requests_resend = true;
        return;
    }
    if (taken != wire::VitalClass::next) {
        return;
    }
    if (chunk.vital) {
        sender_.acknowledged_sequence = chunk.sequence;
    }
    if (head != nullptr && head->spec != nullptr && head->system == head->spec->system) {
        on_message(*head, chunk.vital);
    }
}

void ReplayClient::on_message(const wire::MessageHeader& head, bool vital) {
    switch (head.spec->id) {
    case MessageId::map_change:
        phase_ = Phase::joining;
        newest_tick_.reset();
        sender_.add_vital_message(encode_message_id("ready", script_->dialect), now_);
        break;
    case MessageId::con_ready:
        sender_.add_vital_message(make_start_info_message(*script_), now_);
        break;
    case MessageId::sv_ready_to_enter:
        enter_game();
        break;
    case MessageId::snap_empty:
        if (const auto body = wire::decode_snapshot(head.spec->id, head.body);
            body && phase_ == Phase::joining && !game_entry_time_ && head.dialect == Dialect::six) {
            acknowledge_secret_tick(body->tick);
        }
        break;
    default:
        if (head.spec->name == "ping") {
            const Bytes reply = encode_message_id("ping_reply", head.dialect);
            if (vital) {
                sender_.add_vital_message(reply, now_);
            } else {
                sender_.add_nonvital_message(reply);
            }
        } else if (head.spec->name == "ping_reply" && std::exchange(awaits_ping_reply_, false)) {
            counts_->round_trip_us.add((now_ - last_ping_time_) / 1000);
        }
    }
}

void ReplayClient::enter_game() {
    if (phase_ != Phase::joining) {
        return;
    }
    phase_ = Phase::playing;
    game_entry_time_ = game_entry_time_.value_or(now_);
    sender_.add_vital_message(encode_message_id("enter_game", script_->dialect), now_);
}

/// Acknowledges the tick `secret`, which a 0.6 server without tokens sends to verify that the
/// client receives datagrams at its address.
void ReplayClient::acknowledge_secret_tick(snapshot::Tick secret) {
    if (!std::exchange(has_acknowledged_secret_, true)) {
        sender_.add_vital_message(encode_message_id("enter_game", script_->dialect), now_);
    }
    send_input(secret, secret, make_idle_input());
}

void ReplayClient::on_verified_snapshot(snapshot::Tick tick) {
    wrong_snapshot_count_ = std::max(0, wrong_snapshot_count_ - 1);
    newest_tick_ = std::max(newest_tick_.value_or(tick), tick);
}

void ReplayClient::on_wrong_snapshot() {
    if (++wrong_snapshot_count_ > kMaxWrongSnapshots && newest_tick_) {
        wrong_snapshot_count_ = 0;
        on_unknown_base();
    }
}

void ReplayClient::on_unknown_base() {
    newest_tick_.reset();
    last_input_time_ = 0;
}

ReplayClient::Timestamp ReplayClient::due_time(const ScriptStep& step) const {
    return *game_entry_time_ + std::llround(static_cast<double>(step.time) / options_.speed);
}

void ReplayClient::play_steps() {
    for (; next_step_ < script_->steps.size() && due_time(script_->steps[next_step_]) <= now_;
         ++next_step_) {
        const ScriptStep& step = script_->steps[next_step_];
        const auto bytes = script_->bytes_of(step);
        if (step.kind == ScriptStep::Kind::input) {
            last_input_.assign(bytes.begin(), bytes.end());
            if (newest_tick_ && now_ - due_time(step) <= kMaxInputDelay) {
                send_input(*newest_tick_, add_lead(*newest_tick_, step.lead_ticks), bytes);
                ++counts_->inputs;
            } else {
                ++counts_->skipped_inputs;
            }
        } else if (!step.vital) {
            sender_.add_nonvital_message(bytes);
            ++counts_->messages;
        } else if (sender_.add_vital_message(bytes, now_)) {
            ++counts_->messages;
        } else {
            return; // the step is sent when the server has acknowledged some chunks
        }
    }
    if (next_step_ == script_->steps.size() && options_.duration == 0) {
        close_connection(ClientEnding::finished);
    }
}

void ReplayClient::send_input(std::int32_t ack, std::int32_t intended,
                              std::span<const std::byte> pressed) {
    Bytes message = encode_message_id("input", script_->dialect);
    snapshot::encode_varint(ack, message);
    snapshot::encode_varint(intended, message);
    message.insert(message.end(), pressed.begin(), pressed.end());
    if (message.size() <= kMaxChunkBytes) {
        sender_.add_nonvital_message(message);
    }
    last_input_time_ = now_;
}

void ReplayClient::repeat_last_input() {
    if (!has_ended() && now_ - last_input_time_ >= kIdleInputInterval) {
        const std::int32_t ack = newest_tick_.value_or(kNoTick);
        send_input(ack, add_lead(ack, 1), last_input_);
    }
}

void ReplayClient::send_ping() {
    if (!has_ended() && now_ - last_ping_time_ >= kPingInterval) {
        last_ping_time_ = now_;
        awaits_ping_reply_ = true;
        ++counts_->pings;
        sender_.add_nonvital_message(encode_message_id("ping", script_->dialect));
    }
}

void ReplayClient::close_connection(ClientEnding ending) {
    if (has_ended()) {
        return;
    }
    if (phase_ == Phase::joining || phase_ == Phase::playing) {
        sender_.add_control(ControlKind::close, now_);
    }
    set_ending_once(ending);
}

std::vector<Bytes> ReplayClient::take_datagrams() {
    if (!has_ended()) {
        sender_.flush(now_);
    }
    return sender_.take_packets();
}

ReplayClient::Timestamp ReplayClient::next_due_time() const {
    Timestamp next = std::max(now_ + kMaxCallInterval, start_);
    if (phase_ == Phase::playing && next_step_ < script_->steps.size()) {
        next = std::min(next, std::max(due_time(script_->steps[next_step_]), now_ + kMillisecond));
    }
    return next;
}

} // namespace tw::replay
