#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/channel/process_link.h"
#include "proxy/process/state_folder.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace tw::process {

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
    /// The numbers of the two descriptors in the child process, which has no others except the
    /// standard streams.
    static constexpr int kLinkDescriptor = 3;
    static constexpr int kMemoryDescriptor = 4;

    /// `command`: the program and its arguments. `link` and `memory`: the descriptors that the
    /// process gets. Errors: throws std::system_error.
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

/// A flag that the user gave on the command line, in an environment variable or in the
/// configuration file.
struct GivenFlag {
    std::string name{}; ///< without dashes
    std::vector<std::string> values{};

    friend bool operator==(const GivenFlag&, const GivenFlag&) = default;
};

/// The start message to an observer. It contains the settings, which must not be on the command
/// line, because all users of the machine can read command lines.
struct ObserverStartup {
    std::uint32_t number = 1; ///< the observer's number within the run, from 1
    /// True if the observer must not inspect before ControlMessage::start_inspecting.
    bool waits_for_previous = false;
    std::vector<GivenFlag> flags{};
    std::string log_level{}; ///< empty: `flags` determine the log level
    PageToken token{};       ///< the token of the live page

    friend bool operator==(const ObserverStartup&, const ObserverStartup&) = default;
};

/// Sends the start message without blocking. Returns false if the observer is gone or cannot take
/// the message now. Throws std::system_error if there is no memory for the message.
bool send_startup(const channel::ProcessLink& link, const ObserverStartup& startup);

/// Waits for the start message. Returns nullopt if the relay's process is gone.
[[nodiscard]] std::optional<ObserverStartup> await_startup(channel::ProcessLink& link);

/// Sends the live page's token to the observer. Returns false on failure.
bool send_token(const channel::ProcessLink& link, const PageToken& token);

/// Reads the token from the text of a message that was sent by send_token().
[[nodiscard]] PageToken token_from_message(std::string_view text);

} // namespace tw::process
