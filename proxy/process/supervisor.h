#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/process/followed_server.h"
#include "proxy/process/observer_process.h"
#include "proxy/process/signals.h"
#include "proxy/process/state_folder.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/ring.h"
#include "proxy/web/http_stream.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// The terminal that this process was started from: SIGHUP says that it is gone, or anything else.
class Terminal {
  public:
    /// Looks whether there is one whose end would end us: not after `nohup`.
    Terminal();

    /// There was one at the start.
    [[nodiscard]] bool exists() const { return had_; }

    /// It was there, and is gone.
    [[nodiscard]] bool gone() const;

  private:
    bool had_ = false;
};

/// When a run ends by itself.
struct TimeLimit {
    std::chrono::duration<double> after{};
    std::string reason; ///< what the log says then
};

/// What changes while a run goes on.
struct Reload {
    std::optional<relay::Impairment> impairment{};
    std::optional<std::string> log_level{}; ///< as spdlog names it
    std::optional<PageToken> token{};
    std::optional<std::vector<ServedServer>> servers{}; ///< those there are to be
    /// ControlMessage::records, ControlMessage::capture and ControlMessage::summary, and what to go on in.
    std::vector<std::pair<channel::ControlMessage, base::UniqueFd>> files{};
};

/// What every live run is asked, wherever its traffic comes from.
struct SupervisorOptions {
    /// See ObserverKeeper; none: there is no observer.
    std::function<std::vector<std::string>(std::uint32_t number, bool waits)> observer{};
    ObserverStartup greeting{}; ///< what each observer is told first
    std::optional<TimeLimit> time_limit{};
    std::function<Reload()> reload{}; ///< on SIGHUP; none: there is nothing to change
    /// Opens the file of ControlMessage::records or ControlMessage::capture again, for an observer that finds it gone;
    /// invalid, with errno: no.
    std::function<base::UniqueFd(channel::ControlMessage word)> open_again{};
    /// Binds the sockets of the live page, for an observer that may not any more; what it throws is
    /// what the observer is told. None: there is no page.
    std::function<std::vector<web::Listening>()> open_page{};
    Terminal terminal{};
};

/// What came of a run.
struct LiveRunResult {
    std::optional<Ending> observer{};    ///< how the last one ended; nothing: there was none
    std::uint32_t observer_failures = 0; ///< observers that ended before their time
};

/// What every live run does beside taking traffic in: keeps an observer, obeys signals, ends in time.
///
/// SIGINT and SIGTERM end it; SIGUSR1 asks for the totals so far; SIGUSR2 for what the flight recorder
/// keeps; SIGHUP reads the configuration and opens the files again, or ends it where its terminal is
/// gone.
class Supervisor {
  public:
    struct Parts {
        channel::SharedRun* shared;
        std::span<const relay::Ring> rings;
        /// The line is to be as bad as this. None: there is no line that could be.
        std::function<void(const relay::Impairment& impairment)> impair{};
        std::function<void()> on_second{};
        /// The servers are to be these. None: there are none to choose.
        std::function<void(const std::vector<ServedServer>& servers)> serve{};
        /// See ObserverKeeper.
        std::function<void(const std::string& session)> resync{};
        std::optional<std::uint32_t> follows{};
    };

    /// From here on signals wait for run(), or for the end of the process.
    /// Errors: std::system_error.
    Supervisor(SupervisorOptions options, Parts parts);

    [[nodiscard]] boost::asio::io_context& io() { return io_; }

    /// Starts the observer. Returns how it ended where it could not begin; it has said why. Where a
    /// signal comes meanwhile that ends the run, that is how it ended.
    [[nodiscard]] std::optional<Ending> open();

    /// Until a signal comes or the time is over, which counts from `started`, or stop() is called.
    void run(std::chrono::steady_clock::time_point started);

    /// On the io_context's thread.
    void stop(std::string_view why);

    /// Null: there is none, and never was.
    [[nodiscard]] ObserverKeeper* keeper() { return keeper_ ? &*keeper_ : nullptr; }

    /// Hands a word on; false while there is no observer.
    bool tell(channel::ControlMessage word, std::string_view text = {}, int descriptor = -1);

    /// Once nothing comes any more: lets the observer read what is left. Once.
    [[nodiscard]] LiveRunResult finish();

  private:
    void await_end(std::chrono::steady_clock::time_point started);
    void on_signal(int signal);
    void reload();
    void every_second(const boost::system::error_code& error);
    void open_again(channel::ControlMessage word);
    void open_page();
    [[nodiscard]] const relay::Impairment& impairment() const;
    void impair_as_asked();

    /// What the observer was asked to have the line be like.
    struct AskedImpairment {
        relay::Impairment before;
        relay::Impairment wanted;
        int seconds = 0; ///< it has had
    };

    SupervisorOptions options_;
    Parts parts_;
    boost::asio::io_context io_{1};
    std::optional<ObserverKeeper> keeper_;
    boost::asio::steady_timer second_timer_{io_};
    boost::asio::steady_timer end_timer_{io_};
    std::optional<Signals> signals_; ///< last: where this cannot start, they end the process
    /// What is due at the same moment comes after all with no error, and must not wait again.
    bool stopping_ = false;
    std::map<channel::ControlMessage, int> open_errors_reported_;
    std::optional<AskedImpairment> asked_impairment_;
};

} // namespace tw::process
