#pragma once

#include "tests/support/session_script.h"

#include <algorithm>
#include <string>
#include <string_view>

/// Messages and helpers for tests with forged packets.
namespace tw::test::evasion {

inline constexpr wire::Token kNoToken{};
inline constexpr std::uint8_t kControl = 0x10;
inline constexpr std::uint8_t kHeaderToken = 0x08;
inline constexpr std::uint8_t kConnless = 0x20;
inline constexpr std::uint8_t kResend = 0x40;
inline constexpr std::uint8_t kCompressed = 0x80;
inline constexpr int kHalfSequenceRange = wire::kSequenceModulus / 2;

inline const Items kForgedItems{{{4, 7}, {66, 66, 0, 0}}};

/// These four messages have different names in the log.
inline MessageBuilder real_message() {
    return message("cl_say").number(0).string("real");
}

inline MessageBuilder forged_message() {
    return message("cl_kill");
}

inline MessageBuilder real_console_line() {
    return rcon_line("real");
}

inline MessageBuilder forged_console_line() {
    return message("sv_motd").string("forged");
}

/// Returns a session that plays and has one snapshot, which later deltas may be based on.
inline SessionScript script_with_base() {
    SessionScript script = playing_session();
    script.snap(10, snapshot::kNoBase, kPickupAndEvent);
    script.log().clear();
    return script;
}

/// Returns the names of the accepted messages, in order.
inline Lines accepted_messages(SessionScript& script) {
    Lines names;
    for (const std::string& each : script.log().lines({"message"})) {
        for (const std::string_view name : {"cl_say", "cl_kill", "rcon_line", "sv_motd"}) {
            if (each.find(' ' + std::string{name}) != std::string::npos) {
                names.emplace_back(name);
            }
        }
    }
    return names;
}

/// Returns the number of findings about rejected packets or chunks.
inline std::size_t count_rejections(SessionScript& script) {
    const auto findings = script.log().findings();
    return static_cast<std::size_t>(std::ranges::count_if(findings, [](const std::string& finding) {
        return finding.starts_with("finding packet.") || finding.starts_with("finding chunk.");
    }));
}

/// Sends a forged client message in a malformed packet, then the real one with the same sequence.
inline void send_forged_then_real(SessionScript& script, const Deviations& odd) {
    script.send_datagram(kC2s, script.pack_deviating(kC2s, {vital(forged_message())}, odd));
    script.send(kC2s, real_message());
}

/// Like send_forged_then_real(), for a message of the server.
inline void send_forged_line_then_real(SessionScript& script, const Deviations& odd) {
    script.send_datagram(kS2c, script.pack_deviating(kS2c, {vital(forged_console_line())}, odd));
    script.send(kS2c, real_console_line());
}

inline void send_control_then_real(SessionScript& script, const wire::ControlSpec& spec) {
    script.control(kC2s, spec);
    script.send(kC2s, real_message());
}

inline constexpr wire::Token kSevenClient{7, 7, 7, 7};
inline constexpr wire::Token kSevenServer{8, 8, 8, 8};

/// Returns a control packet of a 0.7 client to the server with the token `to`.
inline Bytes seven_control_packet(wire::ControlKind kind,
                                  const wire::Token& to = wire::kTokenUnknown) {
    return wire::encode_control({.kind = kind, .token = kSevenClient, .seven_token = to});
}

/// Returns the datagram as a control packet with a 0.7 header, whose token belongs to no
/// connection.
inline Bytes add_seven_header(Bytes datagram) {
    constexpr std::byte kSevenControl{4};
    datagram[0] = (datagram[0] & std::byte{3}) | kSevenControl;
    datagram.insert(datagram.begin() + wire::kHeaderSize, wire::kTokenSize, std::byte{9});
    return datagram;
}

} // namespace tw::test::evasion
