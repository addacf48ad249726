#pragma once

#include "proxy/relay/unique_fd.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tw::run {

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
    relay::UniqueFd descriptor_;
    std::optional<Ending> ending_;
};

} // namespace tw::run
