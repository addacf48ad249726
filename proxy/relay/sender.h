#pragma once

#include "proxy/relay/counters.h"

#include <cstddef>

#include <sys/socket.h>

namespace tw::relay {

/// Sends messages in order with as few calls as the socket allows, and counts what became of them.
///
/// A full buffer is tried again once, then the datagram is dropped: one that waits delays all
/// others, and UDP's users know loss. "Refused" is news of an earlier datagram; this one is sent.
void send_messages(int socket, mmsghdr* messages, std::size_t count,
                   DirectionTotals<Counter>& totals, Counter& icmp_refused) noexcept;

} // namespace tw::relay
