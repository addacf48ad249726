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
struct Ending {
    int code = 0;   ///< exit code, where it left by itself
    int signal = 0; ///< that ended it; 0: it left by itself

    [[nodiscard]] bool well() const { return code == 0 && signal == 0; }
};

/// "exit code 3", "signal 11 (Segmentation fault)"
[[nodiscard]] std::string describe(const Ending& ending);

/// A child process of this program that is handed two descriptors. Killed when it still runs at the
/// end of its owner.
class ObserverProcess {
  public:
    /// What the child finds its descriptors as; it has no others but the standard ones.
    static constexpr int kLink = 3;
    static constexpr int kMemory = 4;

    /// Starts `command`: the program and its arguments.
    /// Errors: throws std::system_error.
    ObserverProcess(const std::vector<std::string>& command, int link, int memory);
    ~ObserverProcess();
    ObserverProcess(const ObserverProcess&) = delete;
    ObserverProcess& operator=(const ObserverProcess&) = delete;
    ObserverProcess(ObserverProcess&&) = delete;
    ObserverProcess& operator=(ObserverProcess&&) = delete;

    [[nodiscard]] pid_t id() const { return id_; }

    /// Readable when it has ended.
    [[nodiscard]] int descriptor() const { return descriptor_.get(); }

    void kill();

    /// Waits so long for its end; nothing while it runs.
    [[nodiscard]] std::optional<Ending> wait(std::chrono::milliseconds patience);

  private:
    pid_t id_ = 0;
    base::UniqueFd descriptor_;
    std::optional<Ending> ending_;
};

/// Keeps an observer beside the relay: starts it, and starts another one when it ended, hangs or was
/// killed. Forwarding never waits for it. On the io_context's thread.
class ObserverKeeper {
  public:
    struct Parts {
        boost::asio::io_context* io;
        channel::SharedRun* shared;
        std::span<const relay::Ring> rings;
        /// Makes the command that starts the observer with this number; `waits`: see ControlMessage::look.
        std::function<std::vector<std::string>(std::uint32_t number, bool waits)> command;
        /// Says to an observer what it has to know before it begins; false when that failed.
        std::function<bool(const channel::ProcessLink& link)> greet;
        /// What the observer asks for, as relay::parse_impairment reads it.
        std::function<void(const std::string& settings)> impair;
        /// The observer's file of ControlMessage::records or ControlMessage::capture is gone: it wants another one.
        std::function<void(channel::ControlMessage word)> open_again{};
        /// The observer wants the sockets of the live page.
        std::function<void()> open_page{};
        /// The observer asks for a full snapshot of the session with this number.
        std::function<void(const std::string& session)> resync{};
        /// Where another relay is followed: the number of its last observer. The first one waits.
        std::optional<std::uint32_t> follows{};
    };

    explicit ObserverKeeper(Parts parts);

    /// Starts the first one and waits until it looks. Returns how it ended where it did not come so
    /// far; it has said why, but for one that was not waited for since a signal is there that ends the
    /// run: that is how it ended.
    /// Errors: throws std::system_error.
    [[nodiscard]] std::optional<Ending> start();

    /// To be called once a second: ends an observer that hangs.
    void check();

    /// The line to the observer; null while there is none.
    [[nodiscard]] const channel::ProcessLink* link() const { return link_ ? &*link_ : nullptr; }

    /// Hands a word on; false while there is no observer.
    bool tell(channel::ControlMessage word) { return link_ && link_->send(word); }

    /// To be called when the relay has ended: lets the observer read what is left and waits for its
    /// end, as long as it gets on. Returns how it ended; as one killed where it had to be.
    [[nodiscard]] Ending finish();

    /// The number of the last one; 0: there was none.
    [[nodiscard]] std::uint32_t number() const { return number_; }

    /// Its process; 0: none.
    [[nodiscard]] pid_t process() const { return process_ ? process_->id() : 0; }

    /// Observers that ended before their time.
    [[nodiscard]] std::uint32_t failures() const { return failures_; }

  private:
    using Clock = std::chrono::steady_clock;

    void spawn();
    void attach();
    void watch();
    void listen();
    void on_message(const channel::ProcessLink::Message& message) const;
    void on_end();
    void start_again();
    [[nodiscard]] bool reads();
    [[nodiscard]] std::size_t unread() const;

    Parts parts_;
    std::uint32_t number_ = 0;
    std::uint32_t failures_ = 0;
    std::optional<ObserverProcess> process_;
    std::optional<channel::ProcessLink> link_;
    boost::asio::posix::stream_descriptor ended_;
    boost::asio::posix::stream_descriptor words_;
    boost::asio::steady_timer again_;
    Clock::time_point started_;
    std::chrono::milliseconds pause_{0};  ///< before the next one is started
    std::uint64_t heartbeats_ = 0;        ///< as last seen
    std::vector<std::uint64_t> consumed_; ///< of each ring, as last seen
    int idle_checks_ = 0;                 ///< in a row in which it did not get on
    bool finishing_ = false;
};

/// Longest text of a configuration: the line takes no more while nobody reads it yet.
inline constexpr std::size_t kMaxSettings = std::size_t{64} << 10U;

/// What an observer is told before it opens anything: what must not stand in its command line,
/// which everyone on the machine may read.
struct ObserverStartup {
    /// Of the configuration, as it was at the start of the run: what changed in the file since then
    /// is for the next run.
    std::string settings{};
    std::string log_level{}; ///< empty: as the settings say
    PageToken token{};       ///< of the live page

    friend bool operator==(const ObserverStartup&, const ObserverStartup&) = default;
};

/// Says it; never waits. False when the line takes no more.
bool send_startup(const channel::ProcessLink& link, const ObserverStartup& greeting);

/// Says another token.
bool send_token(const channel::ProcessLink& link, const PageToken& token);

/// What send_token said.
[[nodiscard]] PageToken token_from(std::string_view text);

/// Waits for it. Nothing: the other end is gone.
[[nodiscard]] std::optional<ObserverStartup> await_startup(channel::ProcessLink& link);

} // namespace tw::process
