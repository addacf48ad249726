#pragma once

#include "proxy/base/clock.h"
#include "proxy/relay/counters.h"
#include "proxy/web/run_state.h"

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

/// Returns an address to which this machine can send in order to reach a socket bound to
/// `listening`. If `listening` has the unspecified address, this is the loopback address.
[[nodiscard]] boost::asio::ip::udp::endpoint
reachable_address(const boost::asio::ip::udp::endpoint& listening);

/// Requests a game server's info as server browsers do. Sends a 0.6 request and, if no answer
/// comes, also a 0.7 request. An answer that comes through a relay shows that relay and server
/// work.
class ServerProbe {
  public:
    /// The maximum number of callbacks that wait for an answer. Further callbacks are called at
    /// once, with `answered` false.
    static constexpr std::size_t kMaxWaitingCallbacks = 64;

    ServerProbe(boost::asio::io_context& io, boost::asio::ip::udp::endpoint where,
                std::chrono::milliseconds deadline);

    /// Sends a request. Calls `done` on the io_context's thread when an answer has arrived or the
    /// deadline has passed. If a request is already in progress, waits for its answer instead of
    /// sending another request.
    void request_info(std::function<void(bool answered)> done);

    /// Drops all waiting callbacks without calling them.
    void stop();

  private:
    void send_request();
    void await_answer();
    void finish_request(bool answered);

    boost::asio::ip::udp::endpoint where_;
    std::chrono::milliseconds deadline_;
    boost::asio::ip::udp::socket socket_;
    boost::asio::steady_timer timer_;
    std::vector<std::function<void(bool)>> waiting_;
    std::vector<std::byte> buffer_;
    /// The current request's token, which the server's answer must contain.
    std::uint8_t token_ = 0;
    bool repeated_ = false; ///< true if the current request was sent more than once
    base::Clock::time_point deadline_at_;
};

/// Whether find_answering_addresses() waits for one answer or for the answers of all addresses.
enum class AnswersWanted : std::uint8_t { one, all };

/// The longest wait for an answer. The request is sent up to four times in this time.
inline constexpr std::chrono::milliseconds kAnswerDeadline{1000};

/// Returns the addresses that answer an info request, in the given order; all addresses if none
/// answers. A single address is returned without a request. Blocks until the deadline at most.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
find_answering_addresses(const std::vector<boost::asio::ip::udp::endpoint>& addresses,
                         AnswersWanted wanted,
                         std::chrono::milliseconds deadline = kAnswerDeadline);

/// Resolves a host name and returns the addresses that answer (see find_answering_addresses()). A
/// name may have several addresses of which the server uses only one. Blocks. Errors:
/// relay::StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
resolve_answering_addresses(const std::string& host, std::uint16_t port, AnswersWanted wanted);

/// Detects from the relay's counters that a server stops answering. Any datagram from the server,
/// in any session, counts as an answer.
class SilenceDetector {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// A server is silent if at least this many datagrams, sent over at least kSilenceTime, got no
    /// answer.
    static constexpr std::uint64_t kMinUnansweredDatagrams = 3;
    static constexpr std::chrono::seconds kSilenceTime{3};
    /// After a longer pause between datagrams to the server, the count of unanswered datagrams
    /// restarts, because such rare datagrams may need no answer.
    static constexpr std::chrono::seconds kMaxSendPause{5};

    /// A period in which the server does not answer.
    struct Silence {
        Time since{}; ///< when the first unanswered datagram was sent, or up to a second later
        std::uint64_t unanswered = 0; ///< number of datagrams to the server in this period
        /// The number of ICMP "port unreachable" messages in this period.
        std::uint64_t refused = 0;
    };

    enum class Change : std::uint8_t {
        none,
        began,
        ended,
    };

    /// Must be called once a second, with the server's counters since the start of the relay.
    /// Returns whether a silence began or ended. After `ended`, silence() describes the ended
    /// silence until the next call of on_second().
    [[nodiscard]] Change on_second(Time now, const relay::Counters& counters);

    [[nodiscard]] bool is_silent() const { return silent_; }

    [[nodiscard]] const Silence& silence() const { return silence_; }

  private:
    std::uint64_t to_server_ = 0;   ///< number of datagrams to the server that expect an answer
    std::uint64_t from_server_ = 0; ///< number of all datagrams from the server
    std::uint64_t refused_ = 0;     ///< number of ICMP "port unreachable" messages
    Time last_sent_{};              ///< when the clients' latest datagram was sent
    Silence silence_;
    bool silent_ = false;
};

/// Reports in the log and on the live page when a server stops or resumes answering.
class SilenceReporter {
  public:
    /// A function that shows a server's silence on the live page; nullopt: the server answers.
    using ShowSilence = std::function<void(const std::optional<web::ServerSilence>& silence)>;

    /// A function that sends the server an info request through the relay, so that the relay's
    /// counters count an answer.
    using SendRequest = std::function<void()>;

    /// Must be called once a second. `counters`: the server's counters.
    /// `send_request`: if not empty, it is called when a silence begins, and the silence is
    /// reported only if this request is not answered either. (The clients' datagrams may need no
    /// answer.)
    void report_changes(SilenceDetector::Time now, const relay::Counters& counters,
                        const std::string& server, const ShowSilence& show,
                        const SendRequest& send_request);

    /// Returns when the current silence began; nullopt if the server is not silent or its silence
    /// was not reported.
    [[nodiscard]] std::optional<base::Timestamp> silent_since() const;

  private:
    /// The longest wait for the answer to an info request, in calls of report_changes().
    static constexpr int kAnswerTimeoutSeconds = 1;

    /// Time between requests to a silent server, in calls of report_changes().
    static constexpr unsigned kRequestIntervalSeconds = 2;

    [[nodiscard]] SilenceDetector::Change detect_change(SilenceDetector::Time now,
                                                        const relay::Counters& counters,
                                                        const SendRequest& send_request);

    SilenceDetector detector_;

    /// The number of calls of report_changes() until a detected silence is reported; 0 if no
    /// silence waits to be reported.
    int seconds_left_ = 0;
    unsigned num_silent_calls_ = 0; ///< calls of report_changes() in which the server was silent
    base::Timestamp since_ = 0;     ///< when the latest reported silence began
};

void log_silence_change(SilenceDetector::Change change, const std::string& server,
                        const SilenceDetector::Silence& silence, SilenceDetector::Time now);

/// Returns a text such as "the server 127.0.0.1:8303 does not answer: …", or "… answers again,
/// after …". Precondition: `change` is not `none`.
[[nodiscard]] std::string describe_silence_change(SilenceDetector::Change change,
                                                  const std::string& server,
                                                  const SilenceDetector::Silence& silence,
                                                  SilenceDetector::Time now);

} // namespace tw::process
