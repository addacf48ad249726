#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/channel/process_link.h"
#include "proxy/channel/shared_block.h"
#include "proxy/process/state_folder.h"
#include "proxy/relay/ring.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <sys/types.h>

namespace tw::process {

/// Tells how a process ended.
struct ProcessExit {
    int code = 0;   ///< the exit code if no signal ended the process
    int signal = 0; ///< the signal that ended the process; 0: the process exited by itself
};

/// Returns a text such as "exit code 3" or "signal 11 (Segmentation fault)".
[[nodiscard]] std::string describe(const ProcessExit& ending);

/// An observer process: a child process that inherits two descriptors. The destructor kills the
/// process if it still runs.
class ObserverProcess {
  public:
    /// The numbers that the two descriptors have in the child process. It has no further
    /// descriptors except the standard streams.
    static constexpr int kLinkDescriptor = 3;
    static constexpr int kMemoryDescriptor = 4;

    /// Starts the process. `command`: the program and its arguments. `link` and `memory`: the
    /// descriptors that the process gets. Errors: throws std::system_error.
    ObserverProcess(const std::vector<std::string>& command, int link, int memory);
    ~ObserverProcess();
    ObserverProcess(const ObserverProcess&) = delete;
    ObserverProcess& operator=(const ObserverProcess&) = delete;

    [[nodiscard]] pid_t id() const { return id_; }

    /// Returns a descriptor that is readable when the process has ended.
    [[nodiscard]] int descriptor() const { return descriptor_.get(); }

    void kill();

    /// Waits up to `timeout` for the end of the process. Returns nullopt if it still runs.
    [[nodiscard]] std::optional<ProcessExit> wait(std::chrono::milliseconds timeout);

  private:
    pid_t id_ = 0;
    base::UniqueFd descriptor_;
    std::optional<ProcessExit> ending_;
};

/// Keeps an observer process running for the relay: starts the process, and starts a new one when
/// it ends or hangs. Forwarding never waits for the observer. Runs on the io_context's thread.
class ObserverKeeper {
  public:
    struct Parts {
        boost::asio::io_context* io;
        channel::SharedRunMemory* shared;
        std::span<const relay::Ring> rings;
        /// Returns the command line that starts the observer with this number. `waits`: the
        /// observer must not inspect before ControlMessage::start_inspecting.
        std::function<std::vector<std::string>(std::uint32_t number, bool waits)> command;
        /// Sends the start message to an observer. Returns false on failure.
        std::function<bool(const channel::ProcessLink& link)> send_startup;
        /// Called when the observer requests an impairment. `settings`: text for
        /// relay::parse_impairment().
        std::function<void(const std::string& settings)> impair;
        /// Called when the observer needs the listening sockets of the live page.
        std::function<void()> open_page{};
        /// Called when the observer requests a full snapshot. `session`: the session's number.
        std::function<void(const std::string& session)> resync{};
        /// After a takeover: the number of the previous relay's last observer. This relay's first
        /// observer waits until that observer has ended.
        std::optional<std::uint32_t> follows{};
    };

    explicit ObserverKeeper(Parts parts);

    /// Starts the first observer and waits until it is ready. Returns nullopt on success. Returns
    /// how the observer ended if it ended before that; unless a signal ended the run, the observer
    /// has reported the reason. Errors: throws std::system_error.
    [[nodiscard]] std::optional<ProcessExit> start();

    /// Kills the observer if it hangs. Must be called once a second.
    void kill_if_hanging();

    /// Returns the connection to the observer; null if no observer runs.
    [[nodiscard]] const channel::ProcessLink* link() const { return link_ ? &*link_ : nullptr; }

    /// Sends a message to the observer. Returns false if no observer runs.
    bool send(channel::ControlMessage kind) { return link_ && link_->send(kind); }

    /// Waits until the observer has read the rings and ended. Kills the observer if it makes no
    /// progress. Returns how it ended. Precondition: the relay has ended.
    [[nodiscard]] ProcessExit finish();

    /// Returns the number of the last observer; 0: no observer was started.
    [[nodiscard]] std::uint32_t observer_number() const { return number_; }

    /// Returns the id of the observer's process; 0: no observer runs.
    [[nodiscard]] pid_t process_id() const { return process_ ? process_->id() : 0; }

    /// Returns the number of observers that ended before the run did.
    [[nodiscard]] std::uint32_t num_failures() const { return failures_; }

  private:
    using Clock = std::chrono::steady_clock;

    void spawn();
    void attach();
    void watch_process();
    void await_message();
    void on_message(const channel::ProcessLink::Message& message) const;
    void on_end();
    void restart();
    [[nodiscard]] bool has_progress();
    [[nodiscard]] std::size_t unread_bytes() const;

    Parts parts_;
    std::uint32_t number_ = 0;
    std::uint32_t failures_ = 0;
    std::optional<ObserverProcess> process_;
    std::optional<channel::ProcessLink> link_;
    boost::asio::posix::stream_descriptor ended_;
    boost::asio::posix::stream_descriptor messages_;
    boost::asio::steady_timer restart_timer_;
    Clock::time_point started_;
    std::chrono::milliseconds pause_{0}; ///< the pause before the next observer is started
    std::uint64_t heartbeats_ = 0;       ///< SharedBlock::heartbeats at the last check
    /// The bytes that had been consumed of each ring at the last check.
    std::vector<std::uint64_t> consumed_;
    int idle_checks_ = 0; ///< number of consecutive checks without progress of the observer
    bool finishing_ = false;
};

/// The longest configuration text, in bytes. The connection can buffer this much.
inline constexpr std::size_t kMaxSettingsBytes = std::size_t{64} << 10U;

/// The start message to an observer. It contains the settings, which must not be on the command
/// line, because all users of the machine can read command lines.
struct ObserverStartup {
    /// The text of the configuration file at the start of the run.
    std::string settings{};
    std::string log_level{}; ///< empty: the settings contain the log level
    PageToken token{};       ///< the token of the live page

    friend bool operator==(const ObserverStartup&, const ObserverStartup&) = default;
};

/// Sends the start message without blocking. Returns false if the connection's buffer is full.
bool send_startup(const channel::ProcessLink& link, const ObserverStartup& startup);

/// Sends the live page's token to the observer. Returns false on failure.
bool send_token(const channel::ProcessLink& link, const PageToken& token);

/// Reads the token from the text of a message that was sent by send_token().
[[nodiscard]] PageToken token_from_message(std::string_view text);

/// Waits for the start message. Returns nullopt if the relay's process is gone.
[[nodiscard]] std::optional<ObserverStartup> await_startup(channel::ProcessLink& link);

} // namespace tw::process
