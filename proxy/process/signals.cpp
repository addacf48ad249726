#include "proxy/process/signals.h"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace tw::process {

void ReadableWatch::start(int descriptor, std::function<void()> on_readable) {
    descriptor_.assign(::dup(descriptor));
    on_readable_ = std::move(on_readable);
    ++changes_;
    await_readable();
}

void ReadableWatch::await_readable() {
    using Descriptor = boost::asio::posix::stream_descriptor;
    descriptor_.async_wait(Descriptor::wait_read, [this, changes = changes_](const auto& error) {
        if (!error && changes == changes_) {
            on_readable_();
        }
        if (!error && changes == changes_) { // on_readable_() has not called stop()
            await_readable();
        }
    });
}

void ReadableWatch::stop() {
    ++changes_;
    boost::system::error_code ignored;
    descriptor_.close(ignored);
}

namespace {

sigset_t block_signals(std::initializer_list<int> signals, sigset_t* before) {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : signals) {
        sigaddset(&blocked, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, before);
    return blocked;
}

} // namespace

BlockedSignals::BlockedSignals() {
    block_signals({SIGINT, SIGTERM, SIGHUP}, &previous_mask_);
}

BlockedSignals::~BlockedSignals() {
    if (!keep_blocked_) {
        ::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
    }
}

SignalReceiver::SignalReceiver(boost::asio::io_context& io, std::initializer_list<int> signals)
    : watch_{io} {
    const sigset_t blocked = block_signals(signals, nullptr);
    signals_ =
        base::take_descriptor(::signalfd(-1, &blocked, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd");
    watch_.start(signals_.get(), [this] {
        signalfd_siginfo signal{};
        if (::read(signals_.get(), &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
            handler_(static_cast<int>(signal.ssi_signo));
        }
    });
}

void notify_service_ready() {
    const char* const given =
        std::getenv("NOTIFY_SOCKET"); // NOLINT(concurrency-mt-unsafe): the program does not set it
    const std::string_view path = given == nullptr ? "" : given;
    sockaddr_un name{};
    if (path.empty() || path.size() >= sizeof name.sun_path) {
        return;
    }
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, path.size());
    if (path.front() == '@') {
        name.sun_path[0] = '\0'; // an abstract socket
    }
    const std::string state = fmt::format("READY=1\nMAINPID={}", ::getpid());
    const base::UniqueFd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    std::ignore = ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                           reinterpret_cast<const sockaddr*>(&name), length);
}

} // namespace tw::process
