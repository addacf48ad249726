#pragma once

#include "proxy/base/clock.h"
#include "proxy/relay/counters.h"
#include "proxy/sink/console.h"
#include "proxy/web/state.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// Returns the address at which this machine reaches a listening socket: loopback if it listens on
/// the unspecified address.
[[nodiscard]] boost::asio::ip::udp::endpoint
reachable_address(const boost::asio::ip::udp::endpoint& listening);

/// Requests a game server's information as server browsers do, in the 0.6 form, and if unanswered
/// also in the 0.7 form. An answer that comes through a relay shows that the relay and the server
/// work.
class ServerProbe {
  public:
    /// The limit of callbacks that wait for one answer; further ones are dropped.
    static constexpr std::size_t kMaxWaitingCallbacks = 64;

    ServerProbe(boost::asio::io_context& io, boost::asio::ip::udp::endpoint where,
                std::chrono::milliseconds deadline);

    /// Sends a request. `done` is called on the io_context's thread with whether an answer came
    /// within the deadline. Requests made meanwhile share that answer.
    void request(std::function<void(bool answered)> done);

    /// Drops all callbacks that wait for an answer, without calling them.
    void stop();

  private:
    void send();
    void receive();
    void finish(bool answered);
    /// Handles a received datagram. Returns whether it is the requested information.
    bool handle_answer(std::span<const std::byte> datagram);

    boost::asio::ip::udp::endpoint where_;
    std::chrono::milliseconds deadline_;
    boost::asio::ip::udp::socket socket_;
    boost::asio::steady_timer timer_;
    std::vector<std::function<void(bool)>> waiting_;
    std::vector<std::byte> buffer_;
    std::uint8_t token_ = 0; ///< token of the current request; the server's answer contains it
    bool repeated_ = false;  ///< the first request was repeated
    base::Clock::time_point deadline_at_;
};

/// How many addresses find_answering() waits for.
enum class AnswersWanted : std::uint8_t { one, all };

/// The time for an answer; the request is repeated four times within it.
inline constexpr std::chrono::milliseconds kAnswerDeadline{1000};

/// Returns the addresses that answer an information request, in the given order, or all of them if
/// none answers. A single address is not asked. Blocks until the deadline at most.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
find_answering(const std::vector<boost::asio::ip::udp::endpoint>& addresses, AnswersWanted wanted,
               std::chrono::milliseconds deadline = kAnswerDeadline);

/// Returns the addresses of a host name that answer. A name may lead to addresses of both families
/// or several machines, while the server listens on one. Blocks. Errors: relay::StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
resolve_answering(const std::string& host, std::uint16_t port, AnswersWanted wanted);

/// Detects from the relay's totals, once a second, that a server stopped answering. Any datagram
/// from the server, in any session, counts as an answer.
class ServerWatch {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// A server is silent after this many unanswered datagrams and kSilenceTime.
    static constexpr std::uint64_t kUnanswered = 3;
    static constexpr std::chrono::seconds kSilenceTime{3};
    /// If datagrams to the server are further apart, they need not expect an answer.
    static constexpr std::chrono::seconds kMaxSendPause{5};

    /// Totals since the relay's start.
    struct Totals {
        std::uint64_t to_server = 0;   ///< datagrams that expect an answer
        std::uint64_t from_server = 0; ///< all datagrams
        std::uint64_t refused = 0;     ///< number of ICMP "port unreachable" messages
    };

    /// A period in which the server answers nothing.
    struct Silence {
        Time since{}; ///< when the first unanswered datagram was sent, within a second
        std::uint64_t unanswered = 0; ///< datagrams to the server
        /// Datagrams to the server that were answered by an ICMP "port unreachable".
        std::uint64_t refused = 0;
    };

    enum class Change : std::uint8_t {
        none,
        began,
        ended,
    };

    /// Returns whether a silence began or ended. After `ended`, silence() describes the ended
    /// silence until the next call.
    [[nodiscard]] Change on_second(Time now, const Totals& totals);

    [[nodiscard]] bool silent() const { return silent_; }

    [[nodiscard]] const Silence& silence() const { return silence_; }

  private:
    Totals last_;
    Time last_sent_{}; ///< when clients sent the last datagram
    Silence silence_;
    bool silent_ = false;
};

/// Reports that a server stopped answering and that it answers again, once each: in the log, on the
/// console and on the live page.
class ServerReport {
  public:
    /// Shows a server's silence on the page; nullopt: the server answers.
    using Show = std::function<void(const std::optional<web::SilenceState>& silence)>;

    /// Sends the server an information request; an answer shows up in the totals.
    using SendRequest = std::function<void()>;

    /// Call it once a second with the server's totals; `console` may be null. With `send_request`,
    /// a silence is reported only if that request stays unanswered as well, because the server may
    /// not answer the clients' datagrams.
    void check(ServerWatch::Time now, const relay::Counters& counters, const std::string& server,
               sink::Console* console, const Show& show, const SendRequest& send_request);

  private:
    /// The time for the answer to `send_request`, in calls of check().
    static constexpr int kAnswerSeconds = 1;

    [[nodiscard]] ServerWatch::Change update(ServerWatch::Time now, const relay::Counters& counters,
                                             const SendRequest& send_request);

    ServerWatch watch_;

    /// Calls of check() until a silence is reported; 0: there is no silence to report.
    int seconds_left_ = 0;
    std::int64_t since_ms_ = 0; ///< Unix time when the silence began
};

/// "the server 127.0.0.1:8303 does not answer: …"
[[nodiscard]] std::string describe_silence(const std::string& server,
                                           const ServerWatch::Silence& silence,
                                           ServerWatch::Time now);
/// "the server 127.0.0.1:8303 answers again, after …"
[[nodiscard]] std::string describe_answer(const std::string& server,
                                          const ServerWatch::Silence& silence,
                                          ServerWatch::Time now);

} // namespace tw::process
