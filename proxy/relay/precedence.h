#pragma once

namespace tw::relay {

// Who goes first where processors are scarce. Both can always be asked for, and no answer changes what is done.

/// For the threads that forward: from Linux 6.12 on, a thread whose turns are short comes to its turn
/// sooner when something wakes it. It gets no more of the processor in all.
void go_first();

/// For all that looks at the traffic, whose delay only records later: the calling thread, and those it
/// starts from then on.
void go_behind();

} // namespace tw::relay
