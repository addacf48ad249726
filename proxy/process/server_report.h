#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/process/server_probe.h"
#include "proxy/relay/counters.h"
#include "proxy/sink/console.h"
#include "proxy/web/state.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace tw::process {

class LivePage;

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

/// One ServerReport for each server.
class ServerReports {
  public:
    /// Call it once a second; `console` and `page` may be null.
    void check(boost::asio::io_context& io, const channel::RelayWindow& relay,
               sink::Console* console, LivePage* page);

    /// Stops all probes.
    void stop();

  private:
    std::map<relay::ServerIndex, ServerReport> reports_;
    std::map<relay::ServerIndex, ServerProbe> probes_;
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
