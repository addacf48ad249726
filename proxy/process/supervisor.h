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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// The controlling terminal of this process. A SIGHUP means that the terminal is gone, or else that
/// the configuration is to be reloaded.
class Terminal {
  public:
    /// Checks whether the process has a terminal. With `nohup`, it counts as having none.
    Terminal();

    /// Whether there was a terminal at the start.
    [[nodiscard]] bool exists() const { return existed_; }

    /// Whether the terminal of the start is gone.
    [[nodiscard]] bool gone() const;

  private:
    bool existed_ = false;
};

struct TimeLimit {
    std::chrono::duration<double> after{};
    std::string reason; ///< the text to log when the limit ends the run
};

/// The settings that can change during a run.
struct ReloadedSettings {
    std::optional<relay::Impairment> impairment{};
    /// The new log level, as spdlog names it; nullopt: unchanged.
    std::optional<std::string> log_level{};
    std::optional<PageToken> token{};
    std::optional<std::vector<ServedServer>> servers{}; ///< the servers to serve from now on
};

/// An output of the observer that continues under its path after its file was moved away. The observer
/// may not open the file, because it would need access to the whole folder.
struct ReopenedOutput {
    std::string_view name; ///< see channel::kRecords
    std::string path;
    /// Opens the file. Returns an invalid descriptor and sets errno on failure. Empty for segments,
    /// which the observer opens.
    std::function<base::UniqueFd()> open{};
    int error = 0; ///< the last failure
};

/// The settings common to all live runs, whatever their source of traffic.
struct SupervisorOptions {
    /// See ObserverKeeper; empty: no observer.
    std::function<std::vector<std::string>(std::uint32_t number, bool waits)> observer{};
    ObserverStartup startup{}; ///< the start message for each observer
    std::optional<TimeLimit> time_limit{};
    /// Called on SIGHUP; empty: nothing can be reloaded.
    std::function<ReloadedSettings()> reload{};
    std::vector<ReopenedOutput> outputs{};
    /// Opens the sockets of the live page for an observer that is confined. An exception is
    /// reported to the observer. Empty: no page.
    std::function<std::vector<web::ListeningSocket>()> open_page{};
    Terminal terminal{};
};

struct LiveRunResult {
    std::optional<ProcessExit> observer{}; ///< how the last one ended; nullopt: there was none
    std::uint32_t observer_failures = 0;   ///< number of observers that ended too early
};

/// The common part of relay and tap runs: keeps an observer running, handles signals and the time
/// limit.
///
/// SIGINT and SIGTERM end the run. SIGUSR1 writes the totals so far, SIGUSR2 the flight recorder's
/// data. SIGHUP reloads the configuration and reopens files, or ends the run if its terminal is
/// gone.
class Supervisor {
  public:
    struct Parts {
        channel::SharedRun* shared;
        std::span<const relay::Ring> rings;
        /// Sets the impairment; an empty function if this run cannot impair.
        std::function<void(const relay::Impairment& impairment)> impair{};
        std::function<void()> on_second{};
        /// Sets the servers; an empty function if this run's servers are fixed.
        std::function<void(const std::vector<ServedServer>& servers)> serve{};
        /// Called when the observer requests a full snapshot of a session, given by its number.
        std::function<void(const std::string& session)> resync{};
        std::optional<std::uint32_t> follows{};
    };

    /// Signals are blocked from here on, until run() or the end of the process.
    /// Errors: std::system_error.
    Supervisor(SupervisorOptions options, Parts parts);

    [[nodiscard]] boost::asio::io_context& io() { return io_; }

    /// Starts the observer. Returns how it ended if it could not start, after it reported why, or
    /// if a signal ended the run.
    [[nodiscard]] std::optional<ProcessExit> open();

    /// Runs until a signal, stop(), or `started` plus the time limit.
    void run(std::chrono::steady_clock::time_point started);

    /// Must be called on the io_context's thread.
    void stop(std::string_view why);

    /// Null if this run has no observer.
    [[nodiscard]] ObserverKeeper* keeper() { return keeper_ ? &*keeper_ : nullptr; }

    /// Sends a message to the observer; returns false if there is none.
    bool send(channel::ControlMessage kind, std::string_view text = {}, int descriptor = -1);

    /// After the traffic has ended: waits until the observer has read the rest. Call it once.
    [[nodiscard]] LiveRunResult finish();

  private:
    void await_end(std::chrono::steady_clock::time_point started);
    void on_signal(int signal);
    void reload();
    void every_second(const boost::system::error_code& error);
    void reopen(ReopenedOutput& output);
    void open_page();
    [[nodiscard]] const relay::Impairment& impairment() const;
    void apply_requested_impairment();

    /// A pending change of the impairment, as requested by the observer.
    struct RequestedImpairment {
        relay::Impairment before;
        relay::Impairment wanted;
        int seconds = 0; ///< seconds since the request
    };

    SupervisorOptions options_;
    Parts parts_;
    boost::asio::io_context io_{1};
    std::optional<ObserverKeeper> keeper_;
    boost::asio::steady_timer second_timer_{io_};
    boost::asio::steady_timer end_timer_{io_};
    /// Constructed last, because it blocks signals: if an earlier member fails, signals still end
    /// the process.
    std::optional<SignalReceiver> signals_;
    /// Set at the end. A timer handler that is already due when its timer is cancelled runs without
    /// an error; it must then not wait again.
    bool stopping_ = false;
    std::optional<RequestedImpairment> requested_impairment_;
};

} // namespace tw::process
