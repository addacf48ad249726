#pragma once

#include "proxy/relay/batch.h"
#include "proxy/relay/endpoint.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/socket.h>

namespace tw::relay {

class Door;

/// A socket clients send to; not owned.
struct Listener {
    int socket = 0;
    Door* door = nullptr;     ///< of its server; null: nobody listens here any more
    bool any_address = false; ///< bound to 0.0.0.0 or ::, so replies must name their address
    bool v6 = false;          ///< of that family; its clients may be of both
    Endpoint local{};         ///< what it is bound to
    std::uint32_t drops = 0;  ///< by the kernel, as last read
};

/// Its place among those of its thread, of which there may be kMaxListeningSockets.
using ListenerIndex = std::uint16_t;

/// The places of those that belong to a door, in the order in which they were added.
[[nodiscard]] std::vector<ListenerIndex> listeners_of(const Door& door,
                                                      std::span<const Listener> all);

/// The addresses of this host's interfaces, without ports, as far as the system names them.
[[nodiscard]] std::vector<Endpoint> interface_addresses();

/// Turns the control message of a datagram into one that makes the reply leave from the address it
/// came to. Returns its length, 0 when there is none.
[[nodiscard]] std::size_t make_reply_control(msghdr& from, Control& to);

/// Datagrams that a socket had no room for since the kernel's counter stood at `seen`, which becomes
/// what it is now.
[[nodiscard]] std::uint32_t new_kernel_drops(int socket, std::uint32_t& seen) noexcept;

} // namespace tw::relay
