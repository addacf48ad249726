#include "proxy/wire/client_trust.h"

#include "proxy/wire/connless.h"
#include "proxy/wire/text.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tw::wire {

namespace {

constexpr std::size_t kSevenTokenRequestSize =
    512; ///< bytes; servers do not answer shorter requests
// Message ids as sent: the id times two, plus one for system messages.
constexpr std::int32_t kSnapEmpty = 6 << 1 | 1;
constexpr std::int32_t kInput = 16 << 1 | 1;

bool is_token_known(const Token& token) {
    return token != kTokenUnsupported && token != kTokenUnknown;
}

void store_token(Token& known, const std::optional<Token>& token) {
    if (token && is_token_known(*token)) {
        known = *token;
    }
}

bool is_token_returned(const Token& known, const Token& token) {
    return is_token_known(known) && token == known;
}

/// Returns the first int of a chunk's body; nullopt if the chunk's message has another id than
/// `id`.
std::optional<std::int32_t> first_int_of(const Chunk& chunk, std::int32_t id) {
    const auto bytes = chunk.payload;
    std::int32_t value = 0;
    const std::size_t used = snapshot::decode_varint(bytes.data(), bytes.size(), value);
    if (used == 0 || value != id ||
        snapshot::decode_varint(bytes.data() + used, bytes.size() - used, value) == 0) {
        return std::nullopt;
    }
    return value;
}

/// Stores the ticks of the empty snapshots in a packet, which are the server's anti-spoof prelude.
/// Returns false if the packet contains no empty snapshot.
bool store_prelude_ticks(ClientTrustState& state, const Packet& packet) {
    bool found = false;
    ChunkReader chunks{packet.payload, packet.num_chunks, Dialect::six};
    while (const auto chunk = chunks.next()) {
        const auto tick = first_int_of(*chunk, kSnapEmpty);
        if (!tick) {
            continue;
        }
        found = true;
        // Only the newest ticks are stored, because a server may choose new ticks if the client
        // asks again.
        state.ticks[state.num_ticks % state.ticks.size()] = *tick;
        const auto next = static_cast<std::size_t>(state.num_ticks) + 1;
        state.num_ticks =
            static_cast<std::uint8_t>(next < 2 * state.ticks.size() ? next : state.ticks.size());
    }
    return found;
}

bool acknowledges_tick(const ClientTrustState& state, const Packet& packet) {
    const auto end =
        state.ticks.begin() +
        std::min<std::ptrdiff_t>(state.num_ticks, static_cast<std::ptrdiff_t>(state.ticks.size()));
    ChunkReader chunks{packet.payload, packet.num_chunks, Dialect::six};
    while (const auto chunk = chunks.next()) {
        const auto tick = first_int_of(*chunk, kInput);
        if (tick && std::find(state.ticks.begin(), end, *tick) != end) {
            return true;
        }
    }
    return false;
}

bool ends_with(std::span<const std::byte> payload, const Token& token) {
    return payload.size() >= kTokenSize && token_at(payload.last(kTokenSize), 0) == token;
}

/// Returns the kind of a client's connless request; nullopt if ff ff ff ff does not follow the
/// header. Sets `payload` to the bytes after the header.
std::optional<ConnlessRequest> read_request(std::span<const std::byte> datagram,
                                            std::span<const std::byte>& payload) {
    const bool seven = (byte_at(datagram, 0) & 3U) == 1;
    const std::size_t header = connless_header_size(seven ? Dialect::seven : Dialect::six);
    if (datagram.size() < header + kConnlessPrefixSize) {
        return std::nullopt;
    }
    payload = datagram.subspan(header);
    const std::string_view head = as_text(payload.first(kConnlessPrefixSize));
    if (!head.starts_with("\xff\xff\xff\xff")) {
        return std::nullopt;
    }
    const std::string_view magic = head.substr(head.size() / 2);
    return magic == "gie3" || magic == "fstd"   ? ConnlessRequest::info
           : magic == "chal" || magic == "fw??" ? ConnlessRequest::master
                                                : ConnlessRequest::other;
}

DatagramJudgement judge_request(const ClientTrustState& state,
                                std::span<const std::byte> datagram) {
    std::span<const std::byte> payload;
    const auto request = read_request(datagram, payload);
    if (!request) {
        return {.trust = Trust::unknown};
    }
    // A 0.6 server answers only if exactly one byte follows the magic. A 0.7 server answers only if
    // the header contains the server's token.
    const bool seven = datagram.size() - payload.size() == connless_header_size(Dialect::seven);
    const bool is_answered =
        *request == ConnlessRequest::info &&
        as_text(payload.subspan(kConnlessPrefixSize / 2)).starts_with("gie3") &&
        (seven ? is_token_returned(state.seven_token, token_at(datagram, 1))
               : payload.size() == kConnlessPrefixSize + 1);
    return {.trust = Trust::connless, .request = *request, .is_answered = is_answered};
}

/// Whether the header has the bit that is set in all 0.7 control packets and in no 0.6 packet.
/// Precondition: the datagram is not connless.
bool has_seven_bit(std::span<const std::byte> datagram) {
    constexpr std::uint32_t kSevenBit = 0x04;
    return (byte_at(datagram, 0) & kSevenBit) != 0;
}

Trust trust_of_seven(const ClientTrustState& state, std::span<const std::byte> datagram) {
    const auto packet = decode_seven_header(datagram);
    if (!packet) {
        return Trust::unknown;
    }
    const bool control = packet->kind == PacketKind::control;
    const ControlKind kind = control ? decode_seven_control(*packet).kind : ControlKind::unknown;
    if (kind != ControlKind::close && is_token_returned(state.seven_token, *packet->header_token)) {
        return Trust::verified;
    }
    // Servers answer only a token request that is at least as long as the answer. Before the
    // server's token is known, no other packet is answered.
    return kind == ControlKind::token && datagram.size() >= kSevenTokenRequestSize
               ? Trust::unverified
               : Trust::unknown;
}

Trust trust_of_packet(const ClientTrustState& state, const Packet& packet) {
    if (packet.kind == PacketKind::control) {
        const Control control = decode_control(packet, std::nullopt);
        if (control.kind == ControlKind::connect) {
            return Trust::unverified;
        }
        if (control.kind == ControlKind::close || control.kind == ControlKind::unknown) {
            return Trust::unknown;
        }
    }
    const bool echoes =
        (is_token_known(state.token) && ends_with(packet.payload, state.token)) ||
        (packet.header_token && is_token_returned(state.header_token, *packet.header_token)) ||
        (packet.kind == PacketKind::chunks && acknowledges_tick(state, packet));
    return echoes ? Trust::verified : Trust::unknown;
}

Trust trust_of_datagram(const ClientTrustState& state, std::span<const std::byte> datagram) {
    if (is_token_known(state.seven_token)) { // chunk packets of 0.7 look like those of 0.6
        const Trust trust = trust_of_seven(state, datagram);
        if (trust == Trust::verified) {
            return trust;
        }
    }
    if (has_seven_bit(datagram)) {
        return trust_of_seven(state, datagram);
    }
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    return packet ? trust_of_packet(state, *packet) : Trust::unknown;
}

/// Whether no further datagram from the client can raise the trust in it.
bool is_trust_final(const ClientTrustState& state) {
    const bool has_secret = is_token_known(state.token) || is_token_known(state.header_token) ||
                            is_token_known(state.seven_token) || state.num_ticks != 0;
    return state.trust == Trust::player || (state.trust == Trust::unverified_player && !has_secret);
}

DatagramJudgement judge_client_datagram(ClientTrustState& state,
                                        std::span<const std::byte> datagram) {
    if (datagram.empty()) {
        state.trust = std::max(state.trust, Trust::unknown);
        return {.trust = state.trust};
    }
    DatagramJudgement judgement;
    if (is_connless(datagram)) {
        judgement = judge_request(state, datagram);
    } else if (is_trust_final(state)) {
        judgement.is_answered = true;
    } else {
        judgement.trust = trust_of_datagram(state, datagram);
        // Servers answer clients that have started a handshake or already play.
        judgement.is_answered =
            judgement.trust >= Trust::unverified || state.trust == Trust::unverified_player;
    }
    const bool both = state.trust == Trust::unverified_player && judgement.trust == Trust::verified;
    state.trust = both ? Trust::player : std::max(state.trust, judgement.trust);
    judgement.trust = state.trust;
    return judgement;
}

/// What a server's datagram proves about the client: nothing, that the client has a slot, or that
/// it plays.
enum class SlotEvidence : std::uint8_t { none, keeps_slot, plays };

/// Returns what a 0.7 server's datagram proves about the client.
SlotEvidence find_seven_slot_evidence(ClientTrustState& state,
                                      std::span<const std::byte> datagram) {
    const auto packet = decode_seven_header(datagram);
    if (!packet) {
        return SlotEvidence::none;
    }
    if (packet->kind == PacketKind::control) {
        const Control control = decode_seven_control(*packet);
        if (control.kind == ControlKind::token) {
            store_token(state.seven_token, control.token);
        }
        return control.kind == ControlKind::keepalive ? SlotEvidence::keeps_slot
                                                      : SlotEvidence::none;
    }
    return packet->num_chunks != 0 ? SlotEvidence::plays : SlotEvidence::none;
}

void store_connectaccept_token(ClientTrustState& state, const Packet& packet,
                               const Control& control) {
    if (control.kind != ControlKind::connectaccept) {
        return;
    }
    if (!control.token) {
        state.accepted_without_token = true;
        return;
    }
    store_token(packet.header_token ? state.header_token : state.token, control.token);
}

SlotEvidence find_slot_evidence(ClientTrustState& state, std::span<const std::byte> datagram) {
    // 0.7 chunk packets look like those of 0.6, but a 0.7 token from the server shows that the
    // client uses 0.7.
    if (has_seven_bit(datagram) || is_token_known(state.seven_token)) {
        return find_seven_slot_evidence(state, datagram);
    }
    constexpr std::uint32_t kControlBit = 0x10;
    const bool control = (byte_at(datagram, 0) & kControlBit) != 0;
    if (state.trust >= Trust::unverified_player && !control) { // a playing client gets no prelude
        const bool chunks = datagram.size() > kHeaderSize && datagram[2] != std::byte{0};
        return chunks ? SlotEvidence::plays : SlotEvidence::none;
    }
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    if (!packet) {
        return SlotEvidence::none;
    }
    if (packet->kind == PacketKind::control) {
        const Control said = decode_control(*packet, std::nullopt);
        store_connectaccept_token(state, *packet, said);
        return said.kind == ControlKind::keepalive ? SlotEvidence::keeps_slot : SlotEvidence::none;
    }
    // Empty snapshots before the first non-empty snapshot are an anti-spoof prelude. The server
    // sends non-empty snapshots only after the client acknowledged the prelude.
    const bool before_the_game =
        state.accepted_without_token && state.trust < Trust::unverified_player;
    const bool is_anti_spoof_prelude = before_the_game && store_prelude_ticks(state, *packet);
    return packet->num_chunks != 0 && !is_anti_spoof_prelude ? SlotEvidence::plays
                                                             : SlotEvidence::none;
}

DatagramJudgement judge_server_datagram(ClientTrustState& state,
                                        std::span<const std::byte> datagram) {
    if (datagram.empty() || is_connless(datagram)) {
        return {.trust = state.trust};
    }
    const SlotEvidence evidence = find_slot_evidence(state, datagram);
    if (evidence == SlotEvidence::plays) {
        state.trust = state.trust >= Trust::verified && state.trust != Trust::unverified_player
                          ? Trust::player
                          : Trust::unverified_player;
    }
    return {.trust = state.trust,
            .shows_player =
                evidence != SlotEvidence::none && state.trust >= Trust::unverified_player};
}

} // namespace

DatagramJudgement judge_datagram(ClientTrustState& state, Direction direction,
                                 std::span<const std::byte> datagram) {
    return direction == Direction::c2s ? judge_client_datagram(state, datagram)
                                       : judge_server_datagram(state, datagram);
}

} // namespace tw::wire
