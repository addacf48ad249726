#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tw::run {

/// Tells from a relay's totals, once a second, whether the server answers: of all sessions
/// together, as long as anything comes from it, it does.
class ServerWatch {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// As many datagrams without any answer, and for as long, make a server silent.
    static constexpr std::uint64_t kUnanswered = 3;
    static constexpr std::chrono::seconds kPatience{3};
    /// Clients that send less often than this do not wait for an answer.
    static constexpr std::chrono::seconds kPause{5};

    /// Totals since the relay's start.
    struct Totals {
        std::uint64_t to_server = 0;   ///< datagrams that ask for an answer
        std::uint64_t from_server = 0; ///< datagrams
        std::uint64_t refused = 0;     ///< "port unreachable" by ICMP
    };

    /// What happened since the server's last datagram.
    struct Silence {
        Time since{};                 ///< the first datagram without an answer, to a second
        std::uint64_t unanswered = 0; ///< datagrams
        std::uint64_t refused = 0;    ///< of these, as far as anybody said so
    };

    enum class Change : std::uint8_t {
        none,
        began,
        ended,
    };

    /// After `ended` the silence is the one that ended, until the next call.
    [[nodiscard]] Change on_second(Time now, const Totals& totals);

    [[nodiscard]] bool silent() const { return silent_; }

    [[nodiscard]] const Silence& silence() const { return silence_; }

  private:
    Totals last_;
    Time last_sent_{}; ///< when clients last sent something
    Silence silence_;
    bool silent_ = false;
};

} // namespace tw::run
