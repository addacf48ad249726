#include "proxy/wire/proof.h"

#include "proxy/wire/connless.h"
#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace tw::wire {

namespace {

constexpr std::ptrdiff_t kSevenConnlessHeader = 9;
constexpr std::size_t kSevenTokenRequest = 512; ///< servers do not answer shorter requests
/// Message ids on the wire: the id times two, plus the system bit.
constexpr std::int32_t kSnapEmpty = 6 << 1 | 1;
constexpr std::int32_t kInput = 16 << 1 | 1;

bool is_real(const Token& token) {
    return token != kTokenUnsupported && token != kTokenUnknown;
}

void learn(Token& known, const std::optional<Token>& token) {
    if (token && is_real(*token)) {
        known = *token;
    }
}

bool returned(const Token& known, const Token& token) {
    return is_real(known) && token == known;
}

/// The first int of a chunk with the system message `id`; nullopt for any other chunk.
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

/// Stores the ticks of an anti-spoof prelude. Returns false if the packet is none.
bool learn_ticks(ProofState& state, const Packet& packet) {
    bool found = false;
    ChunkReader chunks{packet.payload, packet.num_chunks, Dialect::six};
    while (const auto chunk = chunks.next()) {
        const auto tick = first_int_of(*chunk, kSnapEmpty);
        if (!tick) {
            continue;
        }
        found = true;
        // The last ticks count: a server that is asked again may have chosen another secret.
        state.ticks[state.num_ticks % state.ticks.size()] = *tick;
        const auto next = static_cast<std::size_t>(state.num_ticks) + 1;
        state.num_ticks =
            static_cast<std::uint8_t>(next < 2 * state.ticks.size() ? next : state.ticks.size());
    }
    return found;
}

bool acknowledges_tick(const ProofState& state, const Packet& packet) {
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
    return payload.size() >= token.size() &&
           std::memcmp(payload.data() + payload.size() - token.size(), token.data(),
                       token.size()) == 0;
}

/// The kind of a client's connless request; nullopt without the mark ff ff ff ff after the header.
/// `payload`: set to the data from the mark on.
std::optional<Request> read_request(std::span<const std::byte> datagram,
                                    std::span<const std::byte>& payload) {
    const bool seven = (std::to_integer<std::uint32_t>(datagram[0]) & 3U) == 1;
    const std::size_t header = seven ? kSevenConnlessHeader : kConnlessHeaderSize;
    if (datagram.size() < header + kConnlessHeadSize) {
        return std::nullopt;
    }
    payload = datagram.subspan(header);
    const std::string_view head = text_of(payload.first(kConnlessHeadSize));
    if (!head.starts_with("\xff\xff\xff\xff")) {
        return std::nullopt;
    }
    const std::string_view magic = head.substr(head.size() / 2);
    return magic == "gie3" || magic == "fstd"   ? Request::info
           : magic == "chal" || magic == "fw??" ? Request::master
                                                : Request::other;
}

Judgement client_asked(const ProofState& state, std::span<const std::byte> datagram) {
    std::span<const std::byte> payload;
    const auto request = read_request(datagram, payload);
    if (!request) {
        return {.trust = Trust::stray};
    }
    // 0.6 servers require exactly one byte after the magic; 0.7 servers require their own token.
    const bool seven = payload.data() - datagram.data() == kSevenConnlessHeader;
    const bool is_answered =
        *request == Request::info &&
        text_of(payload.subspan(kConnlessHeadSize / 2)).starts_with("gie3") &&
        (seven ? is_real(state.seven_token) &&
                     text_of(datagram.subspan(1))
                         .starts_with(text_of(std::as_bytes(std::span{state.seven_token})))
               : payload.size() == kConnlessHeadSize + 1);
    return {.trust = Trust::connless, .request = *request, .is_answered = is_answered};
}

/// Whether the datagram is a 0.7 control packet: all of these have this bit, none of 0.6.
/// Precondition: not connless.
bool begins_seven(std::span<const std::byte> datagram) {
    constexpr std::uint32_t kSevenBit = 0x04;
    return (std::to_integer<std::uint32_t>(datagram[0]) & kSevenBit) != 0;
}

Trust client_said_seven(const ProofState& state, std::span<const std::byte> datagram) {
    const auto packet = decode_seven_header(datagram);
    if (!packet) {
        return Trust::stray;
    }
    const bool control = packet->kind == PacketKind::control;
    const ControlKind kind = control ? decode_seven_control(*packet).kind : ControlKind::unknown;
    if (kind != ControlKind::close && returned(state.seven_token, *packet->header_token)) {
        return Trust::verified;
    }
    // A packet that no server answers begins nothing: a request shorter than its answer, or any
    // packet before the server's token is known.
    return kind == ControlKind::token && datagram.size() >= kSevenTokenRequest ? Trust::unproven
                                                                               : Trust::stray;
}

Trust client_said(const ProofState& state, const Packet& packet) {
    if (packet.kind == PacketKind::control) {
        const Control control = decode_control(packet, std::nullopt);
        if (control.kind == ControlKind::connect) {
            return Trust::unproven;
        }
        if (control.kind == ControlKind::close || control.kind == ControlKind::unknown) {
            return Trust::stray;
        }
    }
    const bool echoes =
        (is_real(state.token) && ends_with(packet.payload, state.token)) ||
        (packet.header_token && returned(state.header_token, *packet.header_token)) ||
        (packet.kind == PacketKind::chunks && acknowledges_tick(state, packet));
    return echoes ? Trust::verified : Trust::stray;
}

Trust client_sent(const ProofState& state, std::span<const std::byte> datagram) {
    if (is_real(state.seven_token)) { // its chunk packets look like those of 0.6
        const Trust trust = client_said_seven(state, datagram);
        if (trust == Trust::verified) {
            return trust;
        }
    }
    if (begins_seven(datagram)) {
        return client_said_seven(state, datagram);
    }
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    return packet ? client_said(state, *packet) : Trust::stray;
}

/// Whether no datagram of the client can increase its trust.
bool can_rise_no_more(const ProofState& state) {
    const bool has_secret = is_real(state.token) || is_real(state.header_token) ||
                            is_real(state.seven_token) || state.num_ticks != 0;
    return state.trust == Trust::player || (state.trust == Trust::weak && !has_secret);
}

Judgement judge_client(ProofState& state, std::span<const std::byte> datagram) {
    if (datagram.empty()) {
        state.trust = std::max(state.trust, Trust::stray);
        return {.trust = state.trust};
    }
    Judgement judgement;
    if ((std::to_integer<std::uint32_t>(datagram[0]) & kConnlessBit) != 0) {
        judgement = client_asked(state, datagram);
    } else if (can_rise_no_more(state)) {
        judgement.is_answered = true;
    } else {
        judgement.trust = client_sent(state, datagram);
        // A client that returned a secret has a connection, and so has one the server plays with.
        judgement.is_answered = judgement.trust >= Trust::unproven || state.trust == Trust::weak;
    }
    const bool both = state.trust == Trust::weak && judgement.trust == Trust::verified;
    state.trust = both ? Trust::player : std::max(state.trust, judgement.trust);
    judgement.trust = state.trust;
    return judgement;
}

/// The meaning of a server's datagram for the client: it keeps a slot, or plays.
enum class Word : std::uint8_t { none, keeps, plays };

/// The meaning of a 0.7 server datagram; nullopt if it is no datagram of a 0.7 connection.
std::optional<Word> server_said_seven(ProofState& state, std::span<const std::byte> datagram) {
    const auto packet = decode_seven_header(datagram);
    if (!packet) {
        return std::nullopt;
    }
    if (packet->kind == PacketKind::control) {
        const Control control = decode_seven_control(*packet);
        if (control.kind == ControlKind::token) {
            learn(state.seven_token, control.token);
        }
        return control.kind == ControlKind::keepalive ? Word::keeps : Word::none;
    }
    return packet->num_chunks != 0 ? Word::plays : Word::none;
}

void learn_accept(ProofState& state, const Packet& packet, const Control& control) {
    if (control.kind != ControlKind::connectaccept) {
        return;
    }
    if (!control.token) {
        state.tokenless = true;
        return;
    }
    learn(packet.header_token ? state.header_token : state.token, control.token);
}

Word server_said(ProofState& state, std::span<const std::byte> datagram) {
    // 0.7 chunk packets look like those of 0.6, but servers send a 0.7 token to 0.7 clients only.
    if (begins_seven(datagram) || is_real(state.seven_token)) {
        return server_said_seven(state, datagram).value_or(Word::none);
    }
    constexpr std::uint32_t kControlBit = 0x10;
    const bool control = (std::to_integer<std::uint32_t>(datagram[0]) & kControlBit) != 0;
    if (state.trust >= Trust::weak && !control) { // the header suffices
        const bool chunks = datagram.size() > kHeaderSize && datagram[2] != std::byte{0};
        return chunks ? Word::plays : Word::none;
    }
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    if (!packet) {
        return Word::none;
    }
    if (packet->kind == PacketKind::control) {
        const Control said = decode_control(*packet, std::nullopt);
        learn_accept(state, *packet, said);
        return said.kind == ControlKind::keepalive ? Word::keeps : Word::none;
    }
    // Empty snapshots before the first real one are a prelude, and the real ones never come before
    // the prelude is acknowledged.
    const bool before_the_game = state.tokenless && state.trust < Trust::weak;
    const bool is_prelude = before_the_game && learn_ticks(state, *packet);
    return packet->num_chunks != 0 && !is_prelude ? Word::plays : Word::none;
}

Judgement judge_server(ProofState& state, std::span<const std::byte> datagram) {
    if (datagram.empty() || (std::to_integer<std::uint32_t>(datagram[0]) & kConnlessBit) != 0) {
        return {.trust = state.trust};
    }
    const Word word = server_said(state, datagram);
    if (word == Word::plays) {
        state.trust = state.trust >= Trust::verified && state.trust != Trust::weak ? Trust::player
                                                                                   : Trust::weak;
    }
    return {.trust = state.trust, .is_play = word != Word::none && state.trust >= Trust::weak};
}

} // namespace

Judgement judge(ProofState& state, Direction direction, std::span<const std::byte> datagram) {
    return direction == Direction::c2s ? judge_client(state, datagram)
                                       : judge_server(state, datagram);
}

} // namespace tw::wire
