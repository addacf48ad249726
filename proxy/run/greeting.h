#pragma once

#include "proxy/run/page_token.h"
#include "proxy/run/process_link.h"

#include <optional>

namespace tw::run {

/// What an observer is told before it opens anything: what must not stand in its command line,
/// which everyone on the machine may read.
struct Greeting {
    PageToken token{}; ///< of the live page

    friend bool operator==(const Greeting&, const Greeting&) = default;
};

/// Says it; never waits. False when the line takes no more.
bool send_greeting(const ProcessLink& link, const Greeting& greeting);

/// Says another token.
bool send_token(const ProcessLink& link, const PageToken& token);

/// What send_token said.
[[nodiscard]] PageToken token_from(std::string_view text);

/// Waits for it. Nothing: the other end is gone.
[[nodiscard]] std::optional<Greeting> await_greeting(ProcessLink& link);

} // namespace tw::run
