#pragma once

namespace tw::relay {

/// A socket clients send to; not owned.
struct Listener {
    int socket = 0;
    bool any_address = false; ///< bound to 0.0.0.0 or ::, so replies must name their address
};

} // namespace tw::relay
