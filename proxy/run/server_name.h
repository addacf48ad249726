#pragma once

#include "proxy/run/name_search.h"

#include <chrono>
#include <optional>

namespace tw::run {

/// Looks a server's name up again while a run goes on.
class ServerName {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Endpoint = NameSearch::Endpoint;
    using Lookup = NameSearch::Lookup;

    /// The system's resolver tells no time to live: often enough for a name that moves, and seldom
    /// enough for whoever serves it.
    static constexpr std::chrono::seconds kInterval{60};
    /// While the server does not answer: it may have moved.
    static constexpr std::chrono::seconds kSilentInterval{5};

    ServerName(Lookup lookup, Endpoint current, Time now);

    /// To be called once a second. Returns the address it has moved to; as long as it has the
    /// current one, too, it has not.
    [[nodiscard]] std::optional<Endpoint> on_second(Time now, bool silent);

    /// It is there now; otherwise it is found anew with the next look.
    void set_current(const Endpoint& current) { current_ = current; }

  private:
    Lookup lookup_;
    Endpoint current_;
    Time looked_;
    std::optional<NameSearch> search_; ///< under way
};

} // namespace tw::run
