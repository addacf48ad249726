#include "proxy/wire/bytes.h"
#include "proxy/wire/packet.h"
#include "proxy/wire/seven.h"
#include "proxy/wire/text.h"

#include <algorithm>

namespace tw::wire {

namespace {

/// "TKEN": the sender of a CONNECT wants, of a CONNECTACCEPT grants DDNet's token.
constexpr std::array kTokenMagic{std::byte{'T'}, std::byte{'K'}, std::byte{'E'}, std::byte{'N'}};

/// A 0.6.5 client pads its CONNECT so that answers are never larger than requests; its token stands
/// at 4..7 of the padding.
constexpr std::size_t kVanillaConnectPadding = 512;
constexpr std::size_t kVanillaConnectToken = 4;

using Bytes = std::span<const std::byte>;

bool ends_with(Bytes data, const std::optional<Token>& token) {
    return token && data.size() >= kTokenSize && token_at(data.last(kTokenSize), 0) == *token;
}

std::string_view text_before_nul(Bytes data) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
    const std::string_view text{reinterpret_cast<const char*>(data.data()), data.size()};
    return text.substr(0, text.find('\0'));
}

void decode_handshake(Bytes data, const Packet& packet, Control& control) {
    if (data.size() >= kTokenMagic.size() &&
        std::equal(kTokenMagic.begin(), kTokenMagic.end(), data.begin())) {
        control.has_token_magic = true;
        if (data.size() >= kTokenMagic.size() + kTokenSize) {
            control.token = token_at(data, kTokenMagic.size());
        }
        return;
    }
    if (control.kind == ControlKind::connect && data.size() >= kVanillaConnectPadding) {
        control.token = token_at(data, kVanillaConnectToken);
        control.vanilla_token = true;
    } else if (control.kind == ControlKind::connectaccept && packet.header_token &&
               data.size() >= kTokenSize) {
        control.token = token_at(data, 0);
        control.vanilla_token = true;
    }
}

/// A CLOSE carries nothing or text with NUL, then the token or not. What a known token does not
/// settle, the shape does: four bytes behind the NUL are a token; four bytes in all are one too,
/// unless they read as three letters with NUL (libtw2's rule).
void decode_close(Bytes data, const std::optional<Token>& known, Control& control) {
    if (ends_with(data, known)) {
        control.token = known;
        control.reason = text_before_nul(data.first(data.size() - kTokenSize));
        return;
    }
    if (data.size() == kTokenSize) {
        if (data[3] == std::byte{0} && is_utf8(data.first(3))) {
            control.reason = text_before_nul(data);
        } else {
            control.token = token_at(data, 0);
        }
        return;
    }
    control.reason = text_before_nul(data);
    if (data.size() == control.reason.size() + 1 + kTokenSize) {
        control.token = token_at(data.last(kTokenSize), 0);
    }
}

} // namespace

std::string_view control_name(ControlKind kind) {
    static constexpr std::array<std::string_view, 7> kNames{
        "keepalive", "connect", "connectaccept", "accept", "close", "", "token"};
    return kNames[static_cast<std::size_t>(kind)];
}

Control decode_control(const Packet& packet, std::optional<Token> known_token) {
    if (packet.dialect == Dialect::seven) {
        return decode_seven_control(packet);
    }
    Control control;
    if (packet.payload.empty()) {
        return control;
    }
    control.raw_kind = std::to_integer<std::uint8_t>(packet.payload[0]);
    if (control.raw_kind < static_cast<std::uint8_t>(ControlKind::unknown)) {
        control.kind = static_cast<ControlKind>(control.raw_kind);
    }
    const Bytes data = packet.payload.subspan(1);
    switch (control.kind) {
    case ControlKind::keepalive:
    case ControlKind::accept:
        if (data.size() == kTokenSize) {
            control.token = token_at(data, 0);
        }
        break;
    case ControlKind::connect:
    case ControlKind::connectaccept:
        decode_handshake(data, packet, control);
        break;
    case ControlKind::close:
        if (packet.header_token) {
            control.reason = text_before_nul(data); // 0.6.5 has its token in front
        } else {
            decode_close(data, known_token, control);
        }
        break;
    case ControlKind::unknown:
    case ControlKind::token:
        break;
    }
    return control;
}

} // namespace tw::wire
