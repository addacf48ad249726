#pragma once

#include "proxy/channel/shared_run_memory.h"
#include "proxy/process/observer_process.h"
#include "proxy/process/server_names.h"
#include "proxy/process/signals.h"
#include "proxy/process/state_folder.h"
#include "proxy/record/interface.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/ring.h"
#include "proxy/web/sockets.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// The controlling terminal of this process. If the terminal is gone, SIGHUP ends the run;
/// otherwise, SIGHUP reloads the configuration.
class ControllingTerminal {
  public:
    /// Checks whether the process has a terminal. A process that ignores SIGHUP (`nohup`) counts as
    /// a process without a terminal.
    ControllingTerminal();

    [[nodiscard]] bool existed_at_start() const { return existed_; }

    [[nodiscard]] bool is_gone() const;

  private:
    bool existed_ = false;
};

struct RunTimeLimit {
    std::chrono::duration<double> duration{};
    std::string reason; ///< the text to log when the limit ends the run
};

/// The settings that can change when the configuration is reloaded. nullopt: unchanged.
struct ReloadedSettings {
    std::optional<relay::Impairment> impairment{};
    /// The new log level, for log::set_level().
    std::optional<std::string> log_level{};
    std::optional<PageToken> token{};
    /// All servers to which the run forwards from now on.
    std::optional<std::vector<ConfiguredServer>> servers{};
};

/// The configuration of a run, which can be read again.
class ReloadableConfig : public record::InterfaceBase {
  public:
    [[nodiscard]] virtual ReloadedSettings reload() = 0;
    /// Opens the live page's sockets, which are sent to the observers. Returns no sockets if there
    /// is no page.
    [[nodiscard]] virtual std::vector<web::ListeningSocket> open_page_sockets() const = 0;
};

/// The settings that relay runs and tap runs have in common.
struct SupervisorOptions {
    /// The program and the arguments that start an observer. The observer's number is appended to
    /// the first argument. Empty: the run has no observer.
    std::vector<std::string> observer_command{};
    ObserverStartup startup{}; ///< the start message for each observer
    std::optional<RunTimeLimit> time_limit{};
    /// Null: the run has no live page and cannot reload its configuration on SIGHUP.
    std::shared_ptr<ReloadableConfig> config{};
    ControllingTerminal terminal{};
};

struct LiveRunResult {
    /// How the latest observer ended; nullopt: the run had no observer.
    std::optional<ProcessExit> observer_exit{};
    std::uint32_t num_observer_failures = 0; ///< number of observers that ended before the run did
};

/// The run that a supervisor controls. By default it ignores requests for changes.
class SupervisedRun : public record::InterfaceBase {
  public:
    virtual void on_second() = 0; ///< called once a second

    virtual void set_impairment(const relay::Impairment& /*impairment*/) {}

    virtual void set_servers(const std::vector<ConfiguredServer>& /*servers*/) {}

    /// Called when the observer requests a full snapshot. `session`: the session's number.
    virtual void request_full_snapshot(const std::string& /*session*/) {}
};

/// Controls a relay or tap run: keeps an observer running, and handles signals and the time limit.
/// A new observer is started when one ends or hangs. Forwarding never waits for the observer.
///
/// SIGINT and SIGTERM end the run. SIGUSR1 makes the observer write a summary of each open session,
/// SIGUSR2 the flight recorder's data. SIGHUP reloads the configuration and reopens files; if the
/// terminal is gone, SIGHUP ends the run.
class Supervisor {
  public:
    struct Dependencies {
        channel::SharedRunMemory* shared;
        std::span<const relay::Ring> rings;
        SupervisedRun* run; ///< must outlive the Supervisor
        /// After a takeover: the number of the previous relay's latest observer. This relay's first
        /// observer waits until that observer has ended.
        std::optional<std::uint32_t> previous_observer{};
    };

    /// Opens the live page's sockets, except after a takeover, when the previous relay still has
    /// them. Blocks signals until run_until_stopped() or the end of the process. Errors:
    /// std::system_error, and those of ReloadableConfig::open_page_sockets.
    Supervisor(SupervisorOptions options, Dependencies parts);

    [[nodiscard]] boost::asio::io_context& io() { return io_; }

    [[nodiscard]] bool has_observer() const { return !options_.observer_command.empty(); }

    /// Starts the first observer and waits until it is ready. Returns nullopt on success, or if the
    /// run has no observer. If the observer ended before it was ready, returns how it ended; the
    /// observer has then reported the reason, unless a signal ended the run. Errors: throws
    /// std::system_error.
    [[nodiscard]] std::optional<ProcessExit> start_observer();

    /// Runs until a signal, a call of stop(), or the time limit, which counts from `started`.
    void run_until_stopped(std::chrono::steady_clock::time_point started);

    /// Ends run_until_stopped(). Must be called on the io_context's thread. `why`: a text to log.
    void stop(std::string_view why);

    /// The number of the latest observer; 0: no observer was started.
    [[nodiscard]] std::uint32_t observer_number() const { return number_; }

    /// The process id of the observer; 0: no observer runs.
    [[nodiscard]] pid_t observer_pid() const { return process_ ? process_->id() : 0; }

    /// Opens the live page's sockets, if there is a page, and sends them to the observer. If that
    /// fails, tries again every second. Must be called after a takeover.
    void open_and_send_page_sockets();

    /// Sends a message to the observer. Returns false if no observer runs.
    bool send(channel::ControlMessage kind, std::string_view text = {}, int descriptor = -1);

    /// Waits until the observer has read all traffic and ended. Must be called once, when no more
    /// traffic follows.
    [[nodiscard]] LiveRunResult finish_run();

  private:
    void on_signal(int signal);
    void handle_message(const channel::ProcessLink::Message& message);
    void reload();
    void await_next_second();
    void send_page_sockets(const channel::ProcessLink& link) const;

    void spawn_observer();
    void watch_observer();
    void on_messages();
    void on_observer_end();
    void restart_observer();
    void restart_observer_later(std::chrono::milliseconds pause);
    void kill_observer_if_hanging();
    [[nodiscard]] ProcessExit finish_observer();
    [[nodiscard]] bool has_observer_progressed();
    [[nodiscard]] std::size_t unread_ring_bytes() const;

    using Clock = std::chrono::steady_clock;

    SupervisorOptions options_;
    Dependencies parts_;
    boost::asio::io_context io_{1};
    std::uint32_t number_;       ///< number of the latest observer; 0: none started
    std::uint32_t failures_ = 0; ///< number of observers that ended before the run did
    std::vector<web::ListeningSocket> page_sockets_; ///< the live page's sockets
    std::string
        page_socket_error_; ///< why the page's sockets cannot be opened yet; empty otherwise
    std::optional<ObserverProcess> process_;
    std::optional<channel::ProcessLink> link_; ///< nullopt if no observer runs
    ReadableWatch observer_end_{io_};
    ReadableWatch observer_messages_{io_};
    boost::asio::steady_timer restart_timer_{io_};
    Clock::time_point observer_started_;
    std::chrono::milliseconds restart_pause_{0}; ///< the pause before the next observer is started
    std::uint64_t heartbeats_ = 0; ///< SharedProcessData::heartbeats at the last check
    /// The number of bytes of each ring that were consumed before the last check.
    std::vector<std::uint64_t> consumed_bytes_;
    int idle_checks_ = 0; ///< number of consecutive checks without progress of the observer
    boost::asio::steady_timer second_timer_{io_};
    boost::asio::steady_timer end_timer_{io_};
    /// Constructed last: from then on, a signal no longer ends the process directly.
    std::optional<SignalReceiver> signals_;
};

} // namespace tw::process
