#include "proxy/wire/proof.h"

#include "proxy/wire/bytes.h"
#include "proxy/wire/chunk.h"
#include "proxy/wire/seven.h"
#include "snapshot/varint.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tw::wire {

namespace {

constexpr std::size_t kSevenConnlessHeader = 9;
constexpr std::size_t kSevenTokenRequest = 512; ///< servers answer none that is shorter
/// Messages as they stand on the wire: their number, doubled, with a bit that means "system".
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

/// The first int of the system message `id`, when the chunk is one.
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

/// Remembers the ticks of a prelude. False when the packet is none.
bool learn_ticks(ProofState& state, const Packet& packet) {
    bool found = false;
    ChunkReader chunks{packet.payload, packet.num_chunks, Dialect::six};
    while (const auto chunk = chunks.next()) {
        const auto tick = first_int_of(*chunk, kSnapEmpty);
        if (!tick) {
            continue;
        }
        found = true;
        // The last ones count: a server that is asked again may have drawn another secret.
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

/// A request that a server answers without a connection: four times ff behind the header.
bool is_request(std::span<const std::byte> datagram) {
    constexpr std::array<std::byte, 4> kMagic{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                              std::byte{0xff}};
    const bool seven = (std::to_integer<std::uint32_t>(datagram[0]) & 3U) == 1;
    const std::size_t header = seven ? kSevenConnlessHeader : kConnlessHeaderSize;
    return datagram.size() >= header + 2 * kMagic.size() &&
           std::memcmp(datagram.data() + header, kMagic.data(), kMagic.size()) == 0;
}

/// Every control packet of 0.7 has this bit, and none of 0.6. Precondition: not connless.
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
        return Trust::proven;
    }
    // What no server answers begins nothing: a request that is shorter than its answer may be, and
    // whatever comes before the server's token is known.
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
    return echoes ? Trust::proven : Trust::stray;
}

Trust client_sent(const ProofState& state, std::span<const std::byte> datagram) {
    if (datagram.empty()) {
        return Trust::stray;
    }
    if ((std::to_integer<std::uint32_t>(datagram[0]) & kConnlessBit) != 0) {
        return is_request(datagram) ? Trust::connless : Trust::stray;
    }
    if (is_real(state.seven_token)) { // its chunks look like those of 0.6
        const Trust trust = client_said_seven(state, datagram);
        if (trust == Trust::proven) {
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

Trust server_said_seven(ProofState& state, std::span<const std::byte> datagram) {
    const auto packet = decode_seven_header(datagram);
    if (packet && packet->kind == PacketKind::control) {
        const Control control = decode_seven_control(*packet);
        if (control.kind == ControlKind::token) {
            learn(state.seven_token, control.token);
        }
    }
    return Trust::connless;
}

void learn_accept(ProofState& state, const Packet& packet) {
    const Control control = decode_control(packet, std::nullopt);
    if (control.kind != ControlKind::connectaccept) {
        return;
    }
    if (!control.token) {
        state.tokenless = true;
        return;
    }
    learn(packet.header_token ? state.header_token : state.token, control.token);
}

Trust server_sent(ProofState& state, std::span<const std::byte> datagram) {
    if (datagram.empty() || (std::to_integer<std::uint32_t>(datagram[0]) & kConnlessBit) != 0) {
        return Trust::connless;
    }
    if (begins_seven(datagram)) {
        return server_said_seven(state, datagram);
    }
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
    if (!packet) {
        return Trust::connless;
    }
    if (packet->kind == PacketKind::control) {
        learn_accept(state, *packet);
        return Trust::connless;
    }
    // Empty snapshots come before the first of the game only in a prelude, and the game never comes
    // before the prelude has been answered.
    const bool before_the_game = state.tokenless && state.trust < Trust::weak;
    return before_the_game && learn_ticks(state, *packet) ? Trust::connless : Trust::weak;
}

/// Whether anything could still prove the client.
bool has_secret(const ProofState& state) {
    return is_real(state.token) || is_real(state.header_token) || is_real(state.seven_token) ||
           state.num_ticks != 0;
}

} // namespace

Trust judge(ProofState& state, Direction direction, std::span<const std::byte> datagram) {
    if (state.trust == Trust::proven || (state.trust == Trust::weak && !has_secret(state))) {
        return state.trust;
    }
    const Trust seen =
        direction == Direction::c2s ? client_sent(state, datagram) : server_sent(state, datagram);
    state.trust = std::max(state.trust, seen);
    return state.trust;
}

} // namespace tw::wire
