#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::run {

/// Looks a server's name up again while a run goes on, on a thread of its own that nobody waits
/// for: a resolver may take as long as it likes.
class ServerName {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Endpoint = boost::asio::ip::udp::endpoint;
    /// The addresses it has now, the best first; none: nobody knows. Called on another thread, also
    /// when its owner is gone.
    using Lookup = std::function<std::vector<Endpoint>()>;

    /// The system's resolver tells no time to live: often enough for a name that moves, and seldom
    /// enough for whoever serves it.
    static constexpr std::chrono::seconds kInterval{60};
    /// While the server does not answer: it may have moved.
    static constexpr std::chrono::seconds kSilentInterval{5};

    ServerName(Lookup lookup, Endpoint current, Time now);

    /// To be called once a second. Returns the address it has moved to; as long as it has the
    /// current one, too, it has not.
    [[nodiscard]] std::optional<Endpoint> on_second(Time now, bool silent);

  private:
    struct Search;

    Lookup lookup_;
    Endpoint current_;
    Time looked_;
    std::shared_ptr<Search> search_; ///< under way; null: none
};

} // namespace tw::run
