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

/// How a process ended.
struct ProcessExit {
    int code = 0;   ///< exit code, if no signal ended the process
    int signal = 0; ///< the signal that ended the process; 0: it exited by itself
};

/// Returns a text such as "exit code 3" or "signal 11 (Segmentation fault)".
[[nodiscard]] std::string describe(const ProcessExit& ending);

/// A child process of this program that gets two descriptors. The destructor kills it if it still
/// runs.
class ObserverProcess {
  public:
    /// The child's numbers of its two descriptors. It has no others except the standard streams.
    static constexpr int kLinkDescriptor = 3;
    static constexpr int kMemoryDescriptor = 4;

    /// Starts `command`, a program with its arguments.
    /// Errors: throws std::system_error.
    ObserverProcess(const std::vector<std::string>& command, int link, int memory);
    ~ObserverProcess();
    ObserverProcess(const ObserverProcess&) = delete;
    ObserverProcess& operator=(const ObserverProcess&) = delete;

    [[nodiscard]] pid_t id() const { return id_; }

    /// Readable when the process has ended.
    [[nodiscard]] int descriptor() const { return descriptor_.get(); }

    void kill();

    /// Waits up to `timeout` for the end of the process; nullopt if it still runs.
    [[nodiscard]] std::optional<ProcessExit> wait(std::chrono::milliseconds timeout);

  private:
    pid_t id_ = 0;
    base::UniqueFd descriptor_;
    std::optional<ProcessExit> ending_;
};

/// Keeps an observer process running for the relay: starts it, and restarts it when it ends or
/// hangs. Forwarding never waits for it. Runs on the io_context's thread.
class ObserverKeeper {
  public:
    struct Parts {
        boost::asio::io_context* io;
        channel::SharedRun* shared;
        std::span<const relay::Ring> rings;
        /// Returns the command that starts the observer with this number. `waits`: whether it
        /// inspects only after ControlMessage::start_inspecting.
        std::function<std::vector<std::string>(std::uint32_t number, bool waits)> command;
        /// Sends an observer its start message; returns false on failure.
        std::function<bool(const channel::ProcessLink& link)> send_startup;
        /// Called when the observer requests an impairment, in relay::parse_impairment's format.
        std::function<void(const std::string& settings)> impair;
        /// Called when the file of the observer's output with this name was moved or deleted, so
        /// that it needs a new one.
        std::function<void(const std::string& output)> reopen{};
        /// Called when the observer needs the listening sockets of the live page.
        std::function<void()> open_page{};
        /// Called when the observer requests a full snapshot of a session, given by its number.
        std::function<void(const std::string& session)> resync{};
        /// After a takeover: the number of the previous relay's last observer. This relay's first
        /// observer then waits until that one has ended.
        std::optional<std::uint32_t> follows{};
    };

    explicit ObserverKeeper(Parts parts);

    /// Starts the first observer and waits until it is ready. Returns how it ended if it did not
    /// get ready; the observer has reported why, unless a signal ended the run meanwhile.
    /// Errors: throws std::system_error.
    [[nodiscard]] std::optional<ProcessExit> start();

    /// Kills an observer that hangs. Call it once a second.
    void check();

    /// The connection to the observer; null if there is none.
    [[nodiscard]] const channel::ProcessLink* link() const { return link_ ? &*link_ : nullptr; }

    /// Sends a message to the observer; returns false if there is none.
    bool send(channel::ControlMessage kind) { return link_ && link_->send(kind); }

    /// After the relay has ended: waits until the observer has read the rings and ended. Kills an
    /// observer that makes no progress. Returns how it ended.
    [[nodiscard]] ProcessExit finish();

    /// The number of the last observer; 0: there was none.
    [[nodiscard]] std::uint32_t number() const { return number_; }

    /// The observer's process; 0: none.
    [[nodiscard]] pid_t process() const { return process_ ? process_->id() : 0; }

    /// The number of observers that ended too early.
    [[nodiscard]] std::uint32_t failures() const { return failures_; }

  private:
    using Clock = std::chrono::steady_clock;

    void spawn();
    void attach();
    void watch_process();
    void await_message();
    void on_message(const channel::ProcessLink::Message& message) const;
    void on_end();
    void restart();
    [[nodiscard]] bool has_read();
    [[nodiscard]] std::size_t unread() const;

    Parts parts_;
    std::uint32_t number_ = 0;
    std::uint32_t failures_ = 0;
    std::optional<ObserverProcess> process_;
    std::optional<channel::ProcessLink> link_;
    boost::asio::posix::stream_descriptor ended_;
    boost::asio::posix::stream_descriptor messages_;
    boost::asio::steady_timer restart_timer_;
    Clock::time_point started_;
    std::chrono::milliseconds pause_{0};  ///< pause before the next start of an observer
    std::uint64_t heartbeats_ = 0;        ///< the heartbeat count at the last check
    std::vector<std::uint64_t> consumed_; ///< bytes consumed of each ring, at the last check
    int idle_checks_ = 0;                 ///< consecutive checks without progress
    bool finishing_ = false;
};

/// The longest configuration text. The connection can buffer this much before the observer reads.
inline constexpr std::size_t kMaxSettingsBytes = std::size_t{64} << 10U;

/// The start message to an observer. It contains the settings, which must not be on the command
/// line, because every user of the machine can read that.
struct ObserverStartup {
    /// The configuration text at the start of the run. Later changes of the file apply to the next
    /// run.
    std::string settings{};
    std::string log_level{}; ///< empty: as in the settings
    PageToken token{};       ///< token of the live page

    friend bool operator==(const ObserverStartup&, const ObserverStartup&) = default;
};

/// Sends the start message without blocking. Returns false if the connection's buffer is full.
bool send_startup(const channel::ProcessLink& link, const ObserverStartup& startup);

/// Sends the live page's token to the observer. Returns false on failure.
bool send_token(const channel::ProcessLink& link, const PageToken& token);

/// Reads the token from the text of a message that send_token() sent.
[[nodiscard]] PageToken token_from(std::string_view text);

/// Waits for the start message; nullopt if the relay's process is gone.
[[nodiscard]] std::optional<ObserverStartup> await_startup(channel::ProcessLink& link);

} // namespace tw::process
