#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tw::wire {

/// A request for server info to which a server answers the same to everybody, but for the token.
enum class InfoRequestKind : std::uint8_t {
    plain = 1, ///< the answer is one "inf3"
    extended, ///< the answer is one "iext" and any number of "iex+"; of servers that do not know it, "inf3"
};

struct InfoRequest {
    InfoRequestKind kind = InfoRequestKind::plain;
    std::uint32_t token = 0; ///< 8 bits, or 24 of an extended one
};

/// Nothing: it is no such request, or one that not all servers read alike.
///
/// Source: protocol sheet, section 1.3.
[[nodiscard]] std::optional<InfoRequest> read_info_request(std::span<const std::byte> datagram);

enum class InfoPart : std::uint8_t { first, more };

/// Which part of the answer to that request a server's datagram is; nothing: it is none.
[[nodiscard]] std::optional<InfoPart> read_info_part(std::span<const std::byte> datagram,
                                                     const InfoRequest& request);

/// Writes a part of an answer as the server would have written it for another request of that kind. Returns
/// its size; 0: there is not enough room, or it is no part of such an answer.
[[nodiscard]] std::size_t write_info_part(std::span<const std::byte> part,
                                          const InfoRequest& request, std::span<std::byte> out);

} // namespace tw::wire
