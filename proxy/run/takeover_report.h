#pragma once

#include "proxy/relay/relay.h"
#include "proxy/run/handover_taker.h"

namespace tw::run {

/// Says in the log what is not as one may have thought, once the relay has taken over: servers that
/// moved or do not go on, and threads that have nothing to do.
void report_takeover(const HandoverTaker& taker, const relay::Relay& relay, unsigned threads);

} // namespace tw::run
