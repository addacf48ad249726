#pragma once

#include <string_view>

namespace tw::run {

/// Tells the service manager, where one started us and waits for that ($NOTIFY_SOCKET), that this
/// process is the service from now on and ready. Source: sd_notify(3).
void notify_ready();

/// Tells it so of the state, as sd_notify(3) has it. False: nobody waits for it, or it cannot be told.
bool notify_service(std::string_view state);

} // namespace tw::run
