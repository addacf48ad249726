#include "proxy/process/observer_process.h"

#include "proxy/base/archive.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tw::process {

namespace {

/// The child's descriptors are first copied to numbers from this one on. Otherwise, dup2() to the
/// final number of one could overwrite the other.
constexpr int kFirstFreeDescriptor = 10;

base::UniqueFd duplicate_with_high_number(int descriptor) {
    return base::take_descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFreeDescriptor),
                                 "duplicate a descriptor");
}

/// Prepares the start of a child process, which gets the standard streams, two further descriptors,
/// and no blocked or ignored signals.
class ChildSetup {
  public:
    ChildSetup(int link, int memory) {
        ::posix_spawn_file_actions_init(&files_);
        ::posix_spawn_file_actions_adddup2(&files_, link, ObserverProcess::kLinkDescriptor);
        ::posix_spawn_file_actions_adddup2(&files_, memory, ObserverProcess::kMemoryDescriptor);
        ::posix_spawn_file_actions_addclosefrom_np(&files_, ObserverProcess::kMemoryDescriptor + 1);
        sigset_t none;
        sigset_t all;
        sigemptyset(&none);
        sigfillset(&all);
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        ::posix_spawnattr_setsigdefault(&attributes_, &all);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }

    ~ChildSetup() {
        ::posix_spawnattr_destroy(&attributes_);
        ::posix_spawn_file_actions_destroy(&files_);
    }

    ChildSetup(const ChildSetup&) = delete;
    ChildSetup& operator=(const ChildSetup&) = delete;

    [[nodiscard]] pid_t spawn(const std::vector<std::string>& command) const {
        std::vector<char*> arguments;
        arguments.reserve(command.size() + 1);
        for (const std::string& argument : command) {
            // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): execve() does not change argv
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

/// Makes the system kill the observer rather than the relay when memory runs out. Has no effect
/// without the permission to do so.
void make_first_oom_victim(pid_t observer) {
    constexpr int kMore = 500;
    constexpr int kMost = 1000;
    int own = 0;
    std::ifstream{"/proc/self/oom_score_adj"} >> own;
    std::ofstream{fmt::format("/proc/{}/oom_score_adj", observer)} << std::min(own + kMore, kMost);
}

} // namespace

std::string describe(const ProcessExit& ending) {
    return ending.signal != 0
               ? fmt::format("signal {} ({})", ending.signal, ::sigdescr_np(ending.signal))
               : fmt::format("exit code {}", ending.code);
}

ObserverProcess::ObserverProcess(const std::vector<std::string>& command, int link, int memory) {
    const base::UniqueFd link_copy = duplicate_with_high_number(link);
    const base::UniqueFd memory_copy = duplicate_with_high_number(memory);
    id_ = ChildSetup{link_copy.get(), memory_copy.get()}.spawn(command);
    descriptor_ = base::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, id_, 0))};
    if (!descriptor_.valid()) {
        const int error = errno;
        ::kill(id_, SIGKILL);
        std::ignore = ::waitpid(id_, nullptr, 0);
        throw std::system_error{error, std::system_category(), "watch the observer's process"};
    }
    make_first_oom_victim(id_);
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

std::optional<ProcessExit> ObserverProcess::wait(std::chrono::milliseconds timeout) {
    if (ending_) {
        return ending_;
    }
    pollfd ended{.fd = descriptor_.get(), .events = POLLIN, .revents = 0};
    std::ignore = ::poll(&ended, 1, static_cast<int>(timeout.count()));
    int status = 0;
    const pid_t waited = ::waitpid(id_, &status, WNOHANG);
    if (waited < 0 && errno == ECHILD) {
        // The exit status is unknown, because SIGCHLD is ignored. The process counts as killed.
        ending_ = ProcessExit{.signal = SIGKILL};
        return ending_;
    }
    if (waited != id_) {
        return std::nullopt;
    }
    ending_ = WIFSIGNALED(status) ? ProcessExit{.signal = WTERMSIG(status)}
                                  : ProcessExit{.code = WEXITSTATUS(status)};
    return ending_;
}

bool send_token(const channel::ProcessLink& link, const PageToken& token) {
    return link.send(channel::ControlMessage::page_token, token.value + '\n' + token.file);
}

PageToken token_from_message(std::string_view text) {
    const auto end = text.find('\n');
    return {.value = std::string{text.substr(0, end)},
            .file = end == std::string_view::npos ? "" : std::string{text.substr(end + 1)}};
}

bool send_startup(const channel::ProcessLink& link, const ObserverStartup& startup) {
    const auto bytes = base::to_archive(startup);
    const auto memory = base::SharedMemory::create(bytes.size());
    std::ranges::copy(bytes, memory.bytes().begin());
    return link.send(channel::ControlMessage::startup, {}, memory.descriptor());
}

std::optional<ObserverStartup> await_startup(channel::ProcessLink& link) {
    while (!link.is_closed()) {
        pollfd sent{.fd = link.descriptor(), .events = POLLIN, .revents = 0};
        std::ignore = ::poll(&sent, 1, -1);
        if (auto message = link.receive()) {
            const auto memory = base::SharedMemory::attach(std::move(message->descriptor));
            return base::from_archive<ObserverStartup>(memory.bytes());
        }
    }
    return std::nullopt;
}

} // namespace tw::process
