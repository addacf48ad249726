#include "proxy/process/supervisor.h"

#include "proxy/base/descriptors.h"
#include "proxy/base/log.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace tw::process {

namespace {

bool has_terminal() {
    return base::UniqueFd{::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)}.valid();
}

/// The longest time that an observer may take to start. Reading a folder of maps from a slow disk
/// takes seconds.
constexpr std::chrono::seconds kMaxStartTime{30};
/// An observer that ran at least this long is restarted after kShortestPause. Otherwise, the pause
/// before the restart doubles.
constexpr std::chrono::seconds kStableTime{1};
constexpr std::chrono::milliseconds kShortestPause{50};
constexpr std::chrono::milliseconds kLongestPause{2000};
/// An observer hangs if it has made no progress for this many checks, which are a second apart.
constexpr int kMaxIdleChecks = 10;
/// At the end of the run, the observer is killed if it makes no progress for this long. The
/// observer may wait up to a second for the bus to acknowledge the last records
/// (bus::kLiveTimeouts).
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

ControllingTerminal::ControllingTerminal() {
    struct sigaction now {};

    existed_ =
        ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN && has_terminal();
}

bool ControllingTerminal::is_gone() const {
    return existed_ && !has_terminal();
}

Supervisor::Supervisor(SupervisorOptions options, Dependencies parts)
    : options_{std::move(options)}, parts_{std::move(parts)},
      number_{parts_.previous_observer.value_or(0)}, consumed_bytes_(parts_.rings.size()) {
    if (options_.config && !parts_.previous_observer) {
        page_sockets_ = options_.config->open_page_sockets();
    }
    signals_.emplace(io_, std::initializer_list<int>{SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP});
}

void Supervisor::run_until_stopped(std::chrono::steady_clock::time_point started) {
    if (options_.time_limit) {
        end_timer_.expires_at(
            started + std::chrono::duration_cast<Clock::duration>(options_.time_limit->duration));
        end_timer_.async_wait([this](const auto& error) {
            if (!error) {
                stop(options_.time_limit->reason);
            }
        });
    }
    signals_->set_handler([this](int signal) { on_signal(signal); });
    second_timer_.expires_at(Clock::now());
    await_next_second();
    io_.run();
}

bool Supervisor::send(channel::ControlMessage kind, std::string_view text, int descriptor) {
    return link_ && link_->send(kind, text, descriptor);
}

/// Handles a message from the observer. The message is untrusted.
void Supervisor::handle_message(const channel::ProcessLink::Message& message) {
    if (message.kind == channel::ControlMessage::ready) {
        parts_.shared->data().observer_memory.observer = number_;
        if (failures_ != 0) {
            log::info("the observer is running again; open sessions are joined midway");
        }
    } else if (message.kind == channel::ControlMessage::impairment) {
        const std::uint64_t seed = parts_.shared->data().facts.impairment.seed;
        if (const auto wanted = relay::parse_impairment(message.text, seed)) {
            parts_.run->set_impairment(*wanted);
        }
    } else if (message.kind == channel::ControlMessage::request_full_snapshot) {
        parts_.run->request_full_snapshot(message.text);
    }
}

void Supervisor::on_signal(int signal) {
    if (signal == SIGUSR1 || signal == SIGUSR2) {
        send(signal == SIGUSR1 ? channel::ControlMessage::write_summaries
                               : channel::ControlMessage::write_flight_recording);
    } else if (signal != SIGHUP) {
        stop(signal == SIGINT ? "interrupted" : "terminated");
    } else if (options_.terminal.is_gone()) {
        stop("the terminal is gone");
    } else if (options_.config) {
        reload();
    }
}

void Supervisor::reload() {
    const ReloadedSettings changes = options_.config->reload();
    send(channel::ControlMessage::reopen_outputs);
    if (changes.log_level) {
        log::set_level(*changes.log_level);
        options_.startup.log_level = *changes.log_level;
        send(channel::ControlMessage::log_level, *changes.log_level);
    }
    if (changes.token && *changes.token != options_.startup.token) {
        options_.startup.token = *changes.token;
        if (link_) {
            send_token(*link_, *changes.token);
        }
    }
    if (changes.servers) {
        parts_.run->set_servers(*changes.servers);
    }
    if (changes.impairment) {
        parts_.run->set_impairment(*changes.impairment);
        // the observer writes the record of the change
        send(channel::ControlMessage::impairment, relay::to_string(*changes.impairment));
    }
}

void Supervisor::await_next_second() {
    // After a delay, missed seconds are skipped, so that checks of the observer are at least a
    // second apart.
    second_timer_.expires_at(std::max(second_timer_.expiry(), Clock::now()) +
                             std::chrono::seconds{1});
    second_timer_.async_wait([this](const auto& error) {
        if (error) {
            return;
        }
        parts_.run->on_second();
        kill_observer_if_hanging();
        if (!page_socket_error_.empty()) {
            open_and_send_page_sockets();
        }
        await_next_second();
    });
}

void Supervisor::open_and_send_page_sockets() {
    if (!options_.config) {
        return;
    }
    try {
        page_sockets_ = options_.config->open_page_sockets();
        page_socket_error_.clear();
    } catch (const std::exception& error) {
        if (page_socket_error_ != error.what()) {
            log::error("live page: {}; trying again", error.what());
            page_socket_error_ = error.what();
        }
    }
    if (link_) {
        send_page_sockets(*link_);
    }
}

void Supervisor::send_page_sockets(const channel::ProcessLink& link) const {
    for (const web::ListeningSocket& each : page_sockets_) {
        link.send(channel::ControlMessage::page_socket, {}, each.descriptor());
    }
}

void Supervisor::stop(std::string_view why) {
    log::info("stopping: {}", why);
    io_.stop();
}

LiveRunResult Supervisor::finish_run() {
    const LiveRunResult result{.observer_exit =
                                   has_observer() ? std::optional{finish_observer()} : std::nullopt,
                               .num_observer_failures = failures_};
    // Closes the page's sockets, so that a relay that has taken over can open them.
    page_sockets_.clear();
    return result;
}

void Supervisor::spawn_observer() {
    auto [own, other] = channel::ProcessLink::create_pair();
    ++number_;
    observer_started_ = Clock::now();
    idle_checks_ = 0;
    options_.startup.number = number_;
    options_.startup.waits_for_previous =
        parts_.previous_observer && number_ == *parts_.previous_observer + 1;
    if (!send_startup(own, options_.startup)) {
        throw std::runtime_error{"cannot send the observer its settings"};
    }
    send_page_sockets(own);
    std::vector<std::string> command = options_.observer_command;
    command.at(1) += std::to_string(number_);
    process_.emplace(command, other.descriptor(), parts_.shared->descriptor());
    link_.emplace(std::move(own));
}

std::optional<ProcessExit> Supervisor::start_observer() {
    if (!has_observer()) {
        return std::nullopt;
    }
    spawn_observer();
    for (const auto deadline = observer_started_ + kMaxStartTime; Clock::now() < deadline;) {
        pollfd word{.fd = link_->descriptor(), .events = POLLIN, .revents = 0};
        std::ignore = ::poll(&word, 1, static_cast<int>(kPollInterval.count()));
        on_messages();
        if (parts_.shared->data().observer_memory.observer != 0) {
            watch_observer();
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

/// Starts to watch the observer's messages and the end of its process. If that fails, kills the
/// process and starts another process.
void Supervisor::watch_observer() {
    try {
        observer_end_.start(process_->descriptor(), [this] { on_observer_end(); });
        observer_messages_.start(link_->descriptor(), [this] { on_messages(); });
    } catch (const boost::system::system_error& error) {
        log::error("cannot watch the observer: {}", error.code().message());
        process_->kill();
        on_observer_end();
    }
}

/// Handles a bounded number of messages at a time, so that a misbehaving observer cannot block
/// signals.
void Supervisor::on_messages() {
    for (int i = 0; i < kMaxMessagesAtOnce; ++i) {
        const auto message = link_->receive();
        if (!message) {
            break;
        }
        handle_message(*message);
    }
    if (link_->is_closed()) {
        observer_messages_.stop();
    }
}

void Supervisor::on_observer_end() {
    const ProcessExit ending =
        process_->wait(kPollInterval).value_or(ProcessExit{.signal = SIGKILL});
    parts_.shared->data().observer_memory.observer = 0;
    ++failures_;
    observer_end_.stop();
    observer_messages_.stop();
    link_.reset();
    process_.reset();
    restart_pause_ = Clock::now() - observer_started_ >= kStableTime
                         ? kShortestPause
                         : std::clamp(2 * restart_pause_, kShortestPause, kLongestPause);
    log::error("the observer ended unexpectedly ({}); forwarding continues; restarting it in {} ms",
               describe(ending), restart_pause_.count());
    restart_observer_later(restart_pause_);
}

void Supervisor::restart_observer_later(std::chrono::milliseconds pause) {
    restart_timer_.expires_after(pause);
    restart_timer_.async_wait([this](const auto& error) {
        if (!error) {
            restart_observer();
        }
    });
}

void Supervisor::restart_observer() {
    try {
        spawn_observer();
        watch_observer();
    } catch (const std::exception& error) {
        log::error("cannot start the observer: {}", error.what());
        link_.reset();
        process_.reset();
        restart_observer_later(kLongestPause);
    }
}

/// Returns whether the observer has read from any ring since the last call.
bool Supervisor::has_observer_progressed() {
    bool has_progressed = false;
    for (std::size_t i = 0; i < parts_.rings.size(); ++i) {
        const std::uint64_t consumed = parts_.rings[i].bytes_consumed();
        has_progressed = has_progressed || consumed != consumed_bytes_[i];
        consumed_bytes_[i] = consumed;
    }
    return has_progressed;
}

std::size_t Supervisor::unread_ring_bytes() const {
    std::size_t bytes = 0;
    for (const relay::Ring& ring : parts_.rings) {
        bytes += ring.num_unconsumed_bytes();
    }
    return bytes;
}

void Supervisor::kill_observer_if_hanging() {
    if (!process_) {
        return;
    }
    const std::uint64_t heartbeats = parts_.shared->data().heartbeats.load();
    const bool beats = heartbeats != heartbeats_;
    heartbeats_ = heartbeats;
    const bool gets_on = has_observer_progressed() || unread_ring_bytes() == 0;
    idle_checks_ = gets_on && beats ? 0 : idle_checks_ + 1;
    const bool starting = parts_.shared->data().observer_memory.observer == 0;
    if (idle_checks_ >= (starting ? static_cast<int>(kMaxStartTime.count()) : kMaxIdleChecks)) {
        log::error("the observer has made no progress for {} seconds; killing it", idle_checks_);
        process_->kill();
        idle_checks_ = 0;
    }
}

ProcessExit Supervisor::finish_observer() {
    if (!process_) {
        if (const std::size_t bytes = unread_ring_bytes(); bytes != 0) {
            log::error("the last {} bytes of traffic were not analysed: no observer was running",
                       bytes);
        }
        return {};
    }
    bool sent = false;
    const auto begin = Clock::now();
    auto has_progressed = begin;
    std::uint64_t written = 0;
    while (true) {
        sent = sent || send(channel::ControlMessage::finish); // tried again if the buffer is full
        if (const auto ending = process_->wait(kPollInterval)) {
            return *ending;
        }
        const auto now = Clock::now();
        const std::uint64_t so_far = parts_.shared->data().record_bytes.load();
        if (has_observer_progressed() || so_far != written) {
            has_progressed = now;
            written = so_far;
        }
        if (now - has_progressed > kStallTime || now - begin > kMaxFinishTime) {
            break;
        }
    }
    log::error("the observer did not end in time and was killed: {} bytes of copies were not "
               "inspected, and records not yet written are lost",
               unread_ring_bytes());
    process_->kill();
    return process_->wait(kMaxFinishTime).value_or(ProcessExit{.signal = SIGKILL});
}

} // namespace tw::process
