#include "proxy/run/relay_window.h"

namespace tw::run {

relay::Impairment RelayWindow::impairment() const {
    const std::scoped_lock lock{mutex_};
    return impairment_;
}

std::string RelayWindow::server() const {
    const std::scoped_lock lock{mutex_};
    return server_;
}

void RelayWindow::set_server(std::string_view server) {
    const std::scoped_lock lock{mutex_};
    server_ = server;
}

void RelayWindow::look_again() {
    const std::scoped_lock lock{mutex_};
    impairment_ = block_->facts.impairment;
}

bool RelayWindow::set_impairment(const relay::Impairment& impairment) {
    const std::scoped_lock lock{mutex_};
    if (!ask_(relay::to_string(impairment))) {
        return false;
    }
    impairment_ = impairment;
    return true;
}

} // namespace tw::run
