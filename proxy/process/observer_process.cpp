#include "proxy/process/observer_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tw::process {

namespace {

/// Descriptors for the child are first copied to numbers from this number on, so that dup2() to
/// their final numbers overwrites none of them.
constexpr int kFirstFreeDescriptor = 10;

base::UniqueFd with_high_number(int descriptor) {
    base::UniqueFd moved{::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFreeDescriptor)};
    if (!moved.valid()) {
        throw std::system_error{errno, std::system_category(), "duplicate a descriptor"};
    }
    return moved;
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
void prefer_for_oom_killer(pid_t observer) {
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
    const base::UniqueFd link_copy = with_high_number(link);
    const base::UniqueFd memory_copy = with_high_number(memory);
    id_ = ChildSetup{link_copy.get(), memory_copy.get()}.spawn(command);
    descriptor_ = base::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, id_, 0))};
    if (!descriptor_.valid()) {
        const int error = errno;
        ::kill(id_, SIGKILL);
        std::ignore = ::waitpid(id_, nullptr, 0);
        throw std::system_error{error, std::system_category(), "watch the observer's process"};
    }
    prefer_for_oom_killer(id_);
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
        // SIGCHLD is ignored, so the exit status is unknown.
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

namespace {

/// The longest time for the start of an observer. A start takes milliseconds, or some seconds with
/// a folder of maps on a slow disk.
constexpr std::chrono::seconds kMaxStartTime{30};
/// An observer that ran this long is restarted at once. Otherwise the pause before a restart
/// doubles.
constexpr std::chrono::seconds kStableTime{1};
constexpr std::chrono::milliseconds kShortestPause{50};
constexpr std::chrono::milliseconds kLongestPause{2000};
/// An observer hangs if it has made no progress for this many checks, which are a second apart.
constexpr int kHangingChecks = 10;
/// At the end of the run, the observer is killed if it makes no progress for this long. A live run
/// waits up to a second until the bus has acknowledged the last records (bus::kLiveTimeouts).
constexpr std::chrono::milliseconds kStallTime{2500};
constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::chrono::seconds kMaxFinishTime{10};
constexpr int kMaxMessagesAtOnce = 16;

/// Returns a pending signal that will end the run; nullopt if no such signal is pending.
std::optional<int> pending_end_signal() {
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    for (const int signal : {SIGINT, SIGTERM}) {
        if (sigismember(&pending, signal) == 1) {
            return signal;
        }
    }
    return std::nullopt;
}

} // namespace

ObserverKeeper::ObserverKeeper(Parts parts)
    : parts_{std::move(parts)}, number_{parts_.follows.value_or(0)}, ended_{*parts_.io},
      messages_{*parts_.io}, restart_timer_{*parts_.io}, consumed_(parts_.rings.size()) {}

void ObserverKeeper::spawn() {
    auto [own, other] = channel::ProcessLink::create_pair();
    ++number_;
    started_ = Clock::now();
    idle_checks_ = 0;
    if (!parts_.send_startup(own)) {
        throw std::runtime_error{"cannot send the observer its settings"};
    }
    const bool waits = parts_.follows && number_ == *parts_.follows + 1;
    process_.emplace(parts_.command(number_, waits), other.descriptor(),
                     parts_.shared->descriptor());
    link_.emplace(std::move(own));
}

std::optional<ProcessExit> ObserverKeeper::start() {
    spawn();
    for (const auto deadline = started_ + kMaxStartTime; Clock::now() < deadline;) {
        pollfd word{.fd = link_->descriptor(), .events = POLLIN, .revents = 0};
        std::ignore = ::poll(&word, 1, static_cast<int>(kPollInterval.count()));
        while (const auto message = link_->receive()) {
            on_message(*message);
        }
        if (parts_.shared->block().observation.observer != 0) {
            attach();
            return std::nullopt;
        }
        if (const auto ending = process_->wait(std::chrono::milliseconds{0})) {
            return ending;
        }
        if (const auto signal = pending_end_signal()) {
            process_->kill();
            std::ignore = process_->wait(kMaxFinishTime);
            return ProcessExit{.signal = *signal};
        }
    }
    process_->kill();
    return process_->wait(kMaxFinishTime);
}

/// Starts waiting for messages and for the end of the observer's process. If that fails, kills the
/// process and starts another process.
void ObserverKeeper::attach() {
    try {
        watch_process();
        await_message();
    } catch (const boost::system::system_error& error) {
        spdlog::error("cannot watch the observer: {}", error.code().message());
        process_->kill();
        on_end();
    }
}

void ObserverKeeper::watch_process() {
    ended_.assign(::dup(process_->descriptor()));
    ended_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const auto& error) {
        if (!error && !finishing_) {
            on_end();
        }
    });
}

void ObserverKeeper::await_message() {
    if (!messages_.is_open()) {
        messages_.assign(::dup(link_->descriptor()));
    }
    messages_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const auto& error) {
                             if (error || finishing_) {
                                 return;
                             }
                             // Handles a bounded number of messages at a time, so that a
                             // misbehaving observer cannot block signals.
                             for (int i = 0; i < kMaxMessagesAtOnce; ++i) {
                                 const auto message = link_->receive();
                                 if (!message) {
                                     break;
                                 }
                                 on_message(*message);
                             }
                             if (!link_->closed()) {
                                 await_message();
                             }
                         });
}

void ObserverKeeper::on_message(const channel::ProcessLink::Message& message) const {
    switch (message.kind) {
    case channel::ControlMessage::ready:
        parts_.shared->block().observation.observer = number_;
        if (failures_ != 0) {
            spdlog::info("the observer is running again; open sessions are joined midway");
        }
        break;
    case channel::ControlMessage::impair:
        parts_.impair(message.text);
        break;
    case channel::ControlMessage::page:
        if (parts_.open_page) {
            parts_.open_page();
        }
        break;
    case channel::ControlMessage::resync:
        if (parts_.resync) {
            parts_.resync(message.text);
        }
        break;
    default:
        break; // only the relay sends such messages
    }
}

void ObserverKeeper::on_end() {
    const ProcessExit ending =
        process_->wait(kPollInterval).value_or(ProcessExit{.signal = SIGKILL});
    parts_.shared->block().observation.observer = 0;
    ++failures_;
    boost::system::error_code ignored;
    ended_.close(ignored);
    messages_.close(ignored);
    link_.reset();
    process_.reset();
    pause_ = Clock::now() - started_ >= kStableTime
                 ? kShortestPause
                 : std::clamp(2 * pause_, kShortestPause, kLongestPause);
    spdlog::error(
        "the observer ended unexpectedly ({}); forwarding continues; restarting it in {} ms",
        describe(ending), pause_.count());
    restart_timer_.expires_after(pause_);
    restart_timer_.async_wait([this](const auto& error) {
        if (!error && !finishing_) {
            restart();
        }
    });
}

void ObserverKeeper::restart() {
    try {
        spawn();
        attach();
    } catch (const std::exception& error) {
        spdlog::error("cannot start the observer: {}", error.what());
        link_.reset();
        process_.reset();
        restart_timer_.expires_after(kLongestPause);
        restart_timer_.async_wait([this](const auto& waited) {
            if (!waited && !finishing_) {
                restart();
            }
        });
    }
}

/// Returns whether the observer has read from any ring since the last call.
bool ObserverKeeper::has_progress() {
    bool moved = false;
    for (std::size_t i = 0; i < parts_.rings.size(); ++i) {
        const std::uint64_t consumed = parts_.rings[i].bytes_consumed();
        moved = moved || consumed != consumed_[i];
        consumed_[i] = consumed;
    }
    return moved;
}

std::size_t ObserverKeeper::unread_bytes() const {
    std::size_t bytes = 0;
    for (const relay::Ring& ring : parts_.rings) {
        bytes += ring.bytes_used();
    }
    return bytes;
}

void ObserverKeeper::kill_if_hanging() {
    if (!process_ || finishing_) {
        return;
    }
    const std::uint64_t heartbeats = parts_.shared->block().heartbeats.load();
    const bool beats = heartbeats != heartbeats_;
    heartbeats_ = heartbeats;
    const bool gets_on = has_progress() || unread_bytes() == 0;
    idle_checks_ = gets_on && beats ? 0 : idle_checks_ + 1;
    const bool starting = parts_.shared->block().observation.observer == 0;
    if (idle_checks_ >= (starting ? static_cast<int>(kMaxStartTime.count()) : kHangingChecks)) {
        spdlog::error("the observer has made no progress for {} seconds; killing it", idle_checks_);
        process_->kill();
        idle_checks_ = 0;
    }
}

ProcessExit ObserverKeeper::finish() {
    finishing_ = true;
    restart_timer_.cancel();
    boost::system::error_code ignored;
    ended_.close(ignored);
    messages_.close(ignored);
    if (!process_) {
        if (const std::size_t bytes = unread_bytes(); bytes != 0) {
            spdlog::error("the last {} bytes of traffic were not analysed: no observer was running",
                          bytes);
        }
        return {};
    }
    bool sent = false;
    const auto begin = Clock::now();
    auto moved = begin;
    std::uint64_t written = 0;
    while (true) {
        sent = sent || send(channel::ControlMessage::finish); // repeated if the buffer is full
        if (const auto ending = process_->wait(kPollInterval)) {
            return *ending;
        }
        const auto now = Clock::now();
        const std::uint64_t so_far = parts_.shared->block().progress.load();
        if (has_progress() || so_far != written) {
            moved = now;
            written = so_far;
        }
        if (now - moved > kStallTime || now - begin > kMaxFinishTime) {
            break;
        }
    }
    spdlog::error("the observer did not end in time and was killed: {} bytes of copies were not "
                  "inspected, and records not yet written are lost",
                  unread_bytes());
    process_->kill();
    return process_->wait(kMaxFinishTime).value_or(ProcessExit{.signal = SIGKILL});
}

bool send_token(const channel::ProcessLink& link, const PageToken& token) {
    return link.send(channel::ControlMessage::token, token.value + '\n' + token.file);
}

PageToken token_from_message(std::string_view text) {
    const auto end = text.find('\n');
    return {.value = std::string{text.substr(0, end)},
            .file = end == std::string_view::npos ? "" : std::string{text.substr(end + 1)}};
}

bool send_startup(const channel::ProcessLink& link, const ObserverStartup& startup) {
    std::string_view rest = startup.settings;
    while (!rest.empty()) {
        const std::string_view piece = rest.substr(0, channel::ProcessLink::kMaxText);
        if (!link.send(channel::ControlMessage::settings, piece)) {
            return false;
        }
        rest.remove_prefix(piece.size());
    }
    return link.send(channel::ControlMessage::log_level, startup.log_level) &&
           send_token(link, startup.token) && link.send(channel::ControlMessage::begin);
}

std::optional<ObserverStartup> await_startup(channel::ProcessLink& link) {
    ObserverStartup startup;
    while (!link.closed()) {
        pollfd said{.fd = link.descriptor(), .events = POLLIN, .revents = 0};
        std::ignore = ::poll(&said, 1, -1);
        while (const auto message = link.receive()) {
            switch (message->kind) {
            case channel::ControlMessage::settings:
                startup.settings += message->text;
                break;
            case channel::ControlMessage::log_level:
                startup.log_level = message->text;
                break;
            case channel::ControlMessage::token:
                startup.token = token_from_message(message->text);
                break;
            case channel::ControlMessage::begin:
                return startup;
            default:
                break; // not a startup message
            }
        }
    }
    return std::nullopt;
}

} // namespace tw::process
