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

class AdminRun;

/// Says once that the server does not answer, and once that it answers again: in the log, on the
/// console and on the live page.
class ServerReport {
  public:
    /// Shows it on the page; nothing: the server answers.
    using Show = std::function<void(const std::optional<web::SilenceState>& silence)>;

    /// Asks the server for something that every server answers; its answer shows in the totals.
    using Ask = std::function<void()>;

    /// To be called once a second with the server's totals; `console` may be null. Nobody knows what all servers
    /// answer: with `ask`, a silence is reported only once the server has not answered that either.
    void check(ServerWatch::Time now, const relay::Counters& counters, const std::string& server,
               sink::Console* console, const Show& show, const Ask& ask);

  private:
    /// The server has so long to answer what it is asked, in calls of check().
    static constexpr int kSecondsToAnswer = 1;

    [[nodiscard]] ServerWatch::Change look(ServerWatch::Time now, const relay::Counters& counters,
                                           const Ask& ask);

    ServerWatch watch_;
    int waits_ =
        0; ///< seconds until the silence that began is reported; 0: it is, or there is none
    std::int64_t since_ms_ = 0; ///< of the silence, since 1970
};

/// The same of each server there is.
class ServerReports {
  public:
    /// To be called once a second; `console` and `page` may be null.
    void check(boost::asio::io_context& io, const channel::RelayWindow& relay,
               sink::Console* console, AdminRun* page);

    /// Nobody is asked any more.
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
