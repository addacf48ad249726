#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace tw::process {

/// Keeps the signals that end or reload a run waiting while it is made: from the first moment on in which
/// anybody sees its ports, they are for it (Signals). Where nothing came of it, they do what they did before.
class HeldSignals {
  public:
    HeldSignals();
    ~HeldSignals();
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;
    HeldSignals(HeldSignals&&) = delete;
    HeldSignals& operator=(HeldSignals&&) = delete;

    /// There is a run, which hears them.
    void leave_to_run() { left_ = true; }

  private:
    sigset_t before_{};
    bool left_ = false;
};

/// Signals, taken one after the other on an io_context's thread. From now on they wait for that, in
/// this thread and those it starts, and still do when this is gone: the end of the process is near
/// then, and its exit code is to say how the run went.
///
/// By a descriptor of the kernel, because boost::asio::signal_set does not tell when it could not
/// register with the io_context, and then nothing would ever be heard.
class Signals {
  public:
    /// Errors: throws std::system_error, or that of Boost.
    Signals(boost::asio::io_context& io, std::initializer_list<int> signals);

    /// Calls `take` with each signal that comes.
    void listen(std::function<void(int signal)> take);

  private:
    void wait();

    boost::asio::posix::stream_descriptor descriptor_;
    std::function<void(int signal)> take_;
};

/// Tells the service manager, where one started us and waits for that ($NOTIFY_SOCKET), that this
/// process is the service from now on and ready. Source: sd_notify(3).
void notify_ready();

/// Tells it so of the state, as sd_notify(3) has it. False: nobody waits for it, or it cannot be told.
bool notify_service(std::string_view state);

} // namespace tw::process
