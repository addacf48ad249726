#include "proxy/run/signals.h"

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <sys/signalfd.h>
#include <unistd.h>

namespace tw::run {

HeldSignals::HeldSignals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&held, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() {
    if (!left_) {
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
}

Signals::Signals(boost::asio::io_context& io, std::initializer_list<int> signals)
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

void Signals::listen(std::function<void(int signal)> take) {
    take_ = std::move(take);
    wait();
}

void Signals::wait() {
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
                               wait();
                           });
}

} // namespace tw::run
