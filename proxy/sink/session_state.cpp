#include "proxy/sink/session_state.h"

#include "proxy/sink/pcapng.h"

#include <algorithm>
#include <array>

namespace tw::sink {

namespace {

constexpr std::uint8_t kVersion = 1;
/// Other programs may use the same type of block.
constexpr std::array<std::uint8_t, 8> kMagic{'t', 'w', 's', 'c', 'o', 'p', 'e', kVersion};
constexpr std::size_t kEnds = kMagic.size() + 4;
constexpr std::size_t kEndpoint = 1 + 16 + 2;
constexpr std::size_t kHead = kEnds + 2 * kEndpoint;

void put_endpoint(const FrameEndpoint& endpoint, std::vector<std::byte>& out) {
    out.push_back(std::byte{endpoint.is_v6 ? std::uint8_t{6} : std::uint8_t{4}});
    const auto address = std::as_bytes(std::span{endpoint.address});
    out.insert(out.end(), address.begin(), address.end());
    out.push_back(static_cast<std::byte>(endpoint.port >> 8U));
    out.push_back(static_cast<std::byte>(endpoint.port));
}

/// Nothing for a family that there is not.
std::optional<FrameEndpoint> read_endpoint(std::span<const std::byte> bytes) {
    const auto family = std::to_integer<std::uint8_t>(bytes[0]);
    if (family != 4 && family != 6) {
        return std::nullopt;
    }
    FrameEndpoint endpoint{.is_v6 = family == 6};
    std::ranges::copy(bytes.subspan(1, endpoint.address.size()),
                      std::as_writable_bytes(std::span{endpoint.address}).begin());
    endpoint.port = static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[17]) << 8U |
                                               std::to_integer<unsigned>(bytes[18]));
    return endpoint;
}

} // namespace

void put_session_state(const SessionState& state, std::vector<std::byte>& out) {
    if (state.bytes.size() > kMaxStateBytes) {
        return;
    }
    std::vector<std::byte> body;
    body.reserve(kHead + state.bytes.size());
    const auto magic = std::as_bytes(std::span{kMagic});
    body.insert(body.end(), magic.begin(), magic.end());
    for (const unsigned shift : {0U, 8U, 16U, 24U}) {
        body.push_back(static_cast<std::byte>(state.bytes.size() >> shift));
    }
    put_endpoint(state.client, body);
    put_endpoint(state.server, body);
    body.insert(body.end(), state.bytes.begin(), state.bytes.end());
    PcapngEncoder{}.block(kStateBlock, body, out);
}

std::optional<SessionState> read_session_state(std::span<const std::byte> body) {
    if (body.size() < kHead ||
        !std::ranges::equal(body.first(kMagic.size()), std::as_bytes(std::span{kMagic}))) {
        return std::nullopt;
    }
    std::size_t size = 0;
    for (const std::size_t i : {3U, 2U, 1U, 0U}) {
        size = size << 8U | std::to_integer<std::size_t>(body[kMagic.size() + i]);
    }
    const auto client = read_endpoint(body.subspan(kEnds));
    const auto server = read_endpoint(body.subspan(kEnds + kEndpoint));
    if (!client || !server || size > kMaxStateBytes || size > body.size() - kHead) {
        return std::nullopt;
    }
    return SessionState{.client = *client, .server = *server, .bytes = body.subspan(kHead, size)};
}

} // namespace tw::sink
