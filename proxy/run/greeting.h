#pragma once

#include "proxy/run/page_token.h"
#include "proxy/run/process_link.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tw::run {

/// Longest text of a configuration: the line takes no more while nobody reads it yet.
inline constexpr std::size_t kMaxSettings = std::size_t{64} << 10U;

/// What an observer is told before it opens anything: what must not stand in its command line,
/// which everyone on the machine may read.
struct Greeting {
    /// Of the configuration, as it was at the start of the run: what changed in the file since then
    /// is for the next run.
    std::string settings{};
    std::string log_level{}; ///< empty: as the settings say
    PageToken token{};       ///< of the live page

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
