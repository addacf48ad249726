#include "proxy/run/terminal.h"

#include "proxy/relay/unique_fd.h"

#include <csignal>

#include <fcntl.h>

namespace tw::run {

namespace {

bool is_there() {
    return relay::UniqueFd{::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)}.valid();
}

} // namespace

Terminal::Terminal() {
    struct sigaction now {};

    had_ = ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN && is_there();
}

bool Terminal::gone() const {
    return had_ && !is_there();
}

} // namespace tw::run
