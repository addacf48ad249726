#pragma once

#include "proxy/base/clock.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// How an address to listen on is reached from here: the unspecified one by loopback.
[[nodiscard]] boost::asio::ip::udp::endpoint
reachable(const boost::asio::ip::udp::endpoint& listening);

/// Asks a game server for its information, as server browsers do, and waits for the answer: in
/// 0.6's way, and where no answer comes at once, in 0.7's too (0.7 sheet, section 10). Through a
/// relay it proves both: that datagrams pass in both directions, and that the server lives.
class ServerProbe {
  public:
    /// More who ask at the same time get no answer.
    static constexpr std::size_t kMaxWaiting = 64;

    ServerProbe(boost::asio::io_context& io, boost::asio::ip::udp::endpoint where,
                std::chrono::milliseconds deadline);

    /// Asks, and says on the io_context's thread whether an answer came within the deadline. Who
    /// asks while one is under way gets its answer.
    void ask(std::function<void(bool answered)> done);

    /// Forgets who is waiting.
    void stop();

  private:
    void send();
    void receive();
    void finish(bool answered);
    /// Whether the datagram is the answer.
    bool take(std::span<const std::byte> datagram);

    boost::asio::ip::udp::endpoint where_;
    std::chrono::milliseconds deadline_;
    boost::asio::ip::udp::socket socket_;
    boost::asio::steady_timer timer_;
    std::vector<std::function<void(bool)>> waiting_;
    std::vector<std::byte> buffer_;
    std::uint8_t token_ = 0; ///< which the answer repeats
    bool repeated_ = false;  ///< the first request had no answer
    base::Clock::time_point ends_;
};

/// How many of a server's addresses have to answer before the others are given up.
enum class Enough : std::uint8_t { one, all };

/// A question for its information gets an answer from a server within this time: it is repeated four
/// times.
inline constexpr std::chrono::milliseconds kAnswerDeadline{1000};

/// Those of a server's addresses that answer when asked for its information, in the order given. All
/// of them if none answers. A single one is not asked. Blocks, at most until the deadline.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
answering(const std::vector<boost::asio::ip::udp::endpoint>& addresses, Enough enough,
          std::chrono::milliseconds deadline = kAnswerDeadline);

/// The addresses that a name leads to, those that answer. A name may have addresses of both families,
/// or of several machines, of which the server listens on one. Blocks. Errors: relay::StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
resolve_answering(const std::string& host, std::uint16_t port, Enough enough);

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

} // namespace tw::process
