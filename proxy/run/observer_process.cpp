#include "proxy/run/observer_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tw::run {

namespace {

/// Above all that the child is handed, so that none is overwritten while they are moved there.
constexpr int kOutOfTheWay = 10;

relay::UniqueFd moved_away(int descriptor) {
    relay::UniqueFd moved{::fcntl(descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay)};
    if (!moved.valid()) {
        throw std::system_error{errno, std::system_category(), "duplicate a descriptor"};
    }
    return moved;
}

/// What a child is to begin with: three standard descriptors, its own two, no signal blocked or ignored.
class Beginning {
  public:
    Beginning(int link, int memory) {
        ::posix_spawn_file_actions_init(&files_);
        ::posix_spawn_file_actions_adddup2(&files_, link, ObserverProcess::kLink);
        ::posix_spawn_file_actions_adddup2(&files_, memory, ObserverProcess::kMemory);
        ::posix_spawn_file_actions_addclosefrom_np(&files_, ObserverProcess::kMemory + 1);
        sigset_t none;
        sigset_t all;
        sigemptyset(&none);
        sigfillset(&all);
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        ::posix_spawnattr_setsigdefault(&attributes_, &all);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }

    ~Beginning() {
        ::posix_spawnattr_destroy(&attributes_);
        ::posix_spawn_file_actions_destroy(&files_);
    }

    Beginning(const Beginning&) = delete;
    Beginning& operator=(const Beginning&) = delete;
    Beginning(Beginning&&) = delete;
    Beginning& operator=(Beginning&&) = delete;

    [[nodiscard]] pid_t spawn(const std::vector<std::string>& command) const {
        std::vector<char*> arguments;
        arguments.reserve(command.size() + 1);
        for (const std::string& argument : command) {
            // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): argv is from a time before const
            arguments.push_back(const_cast<char*>(argument.c_str()));
        }
        arguments.push_back(nullptr);
        pid_t id = 0;
        const int error =
            ::posix_spawn(&id, "/proc/self/exe", &files_, &attributes_, arguments.data(), environ);
        if (error != 0) {
            throw std::system_error{error, std::system_category(), "start the observer's process"};
        }
        return id;
    }

  private:
    posix_spawn_file_actions_t files_{};
    posix_spawnattr_t attributes_{};
};

/// Where memory runs out, the system ends the observer rather than the process that forwards. Without
/// permission for that nothing changes.
void offer_to_oom_killer(pid_t observer) {
    constexpr int kMore = 500;
    constexpr int kMost = 1000;
    int own = 0;
    std::ifstream{"/proc/self/oom_score_adj"} >> own;
    std::ofstream{fmt::format("/proc/{}/oom_score_adj", observer)} << std::min(own + kMore, kMost);
}

} // namespace

std::string describe(const Ending& ending) {
    return ending.signal != 0
               ? fmt::format("signal {} ({})", ending.signal, ::sigdescr_np(ending.signal))
               : fmt::format("exit code {}", ending.code);
}

ObserverProcess::ObserverProcess(const std::vector<std::string>& command, int link, int memory) {
    const relay::UniqueFd link_copy = moved_away(link);
    const relay::UniqueFd memory_copy = moved_away(memory);
    id_ = Beginning{link_copy.get(), memory_copy.get()}.spawn(command);
    descriptor_ = relay::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, id_, 0))};
    if (!descriptor_.valid()) {
        const int error = errno;
        ::kill(id_, SIGKILL);
        std::ignore = ::waitpid(id_, nullptr, 0);
        throw std::system_error{error, std::system_category(), "watch the observer's process"};
    }
    offer_to_oom_killer(id_);
}

ObserverProcess::~ObserverProcess() {
    if (!ending_) {
        kill();
        std::ignore = ::waitpid(id_, nullptr, 0);
    }
}

void ObserverProcess::kill() {
    if (!ending_) {
        ::kill(id_, SIGKILL);
    }
}

std::optional<Ending> ObserverProcess::wait(std::chrono::milliseconds patience) {
    if (ending_) {
        return ending_;
    }
    pollfd ended{.fd = descriptor_.get(), .events = POLLIN, .revents = 0};
    std::ignore = ::poll(&ended, 1, static_cast<int>(patience.count()));
    int status = 0;
    const pid_t waited = ::waitpid(id_, &status, WNOHANG);
    if (waited < 0 && errno == ECHILD) {
        // Whoever started us ignores the ends of children: it has ended, and nobody knows how.
        ending_ = Ending{.signal = SIGKILL};
        return ending_;
    }
    if (waited != id_) {
        return std::nullopt;
    }
    ending_ = WIFSIGNALED(status) ? Ending{.signal = WTERMSIG(status)}
                                  : Ending{.code = WEXITSTATUS(status)};
    return ending_;
}

} // namespace tw::run
