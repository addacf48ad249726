#include "proxy/process/signals.h"

#include "proxy/base/descriptors.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace tw::process {

BlockedSignals::BlockedSignals() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&blocked, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

BlockedSignals::~BlockedSignals() {
    if (!keep_blocked_) {
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
}

SignalReceiver::SignalReceiver(boost::asio::io_context& io, std::initializer_list<int> signals)
    : descriptor_{io} {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal : signals) {
        sigaddset(&wanted, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
    const int descriptor = ::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
    if (descriptor < 0) {
        throw std::system_error{errno, std::system_category(), "signalfd"};
    }
    descriptor_.assign(descriptor);
}

void SignalReceiver::listen(std::function<void(int signal)> take) {
    take_ = std::move(take);
    await_signal();
}

void SignalReceiver::await_signal() {
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [this](const boost::system::error_code& error) {
                               if (error) {
                                   return;
                               }
                               signalfd_siginfo signal{};
                               if (::read(descriptor_.native_handle(), &signal, sizeof signal) ==
                                   static_cast<ssize_t>(sizeof signal)) {
                                   take_(static_cast<int>(signal.ssi_signo));
                               }
                               await_signal();
                           });
}

bool send_service_state(std::string_view state) {
    const char* const given =
        std::getenv("NOTIFY_SOCKET"); // NOLINT(concurrency-mt-unsafe): the program does not set it
    const std::string_view path = given == nullptr ? "" : given;
    sockaddr_un name{};
    if (path.empty() || path.size() >= sizeof name.sun_path) {
        return false;
    }
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, path.size());
    if (path.front() == '@') {
        name.sun_path[0] = '\0'; // an abstract socket
    }
    const base::UniqueFd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    return ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                    reinterpret_cast<const sockaddr*>(&name),
                    length) == static_cast<ssize_t>(state.size());
}

void notify_service_ready() {
    send_service_state(fmt::format("READY=1\nMAINPID={}", ::getpid()));
}

} // namespace tw::process
