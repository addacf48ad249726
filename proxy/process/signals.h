#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace tw::process {

/// Blocks the signals that end or reload a run, while the run is constructed. A signal that arrives
/// meanwhile is thus delivered to the run's SignalReceiver. The destructor unblocks the signals,
/// unless keep_blocked() was called.
class BlockedSignals {
  public:
    BlockedSignals();
    ~BlockedSignals();
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

    /// To be called once a run handles the signals: the destructor then does not unblock them.
    void keep_blocked() { keep_blocked_ = true; }

  private:
    sigset_t before_{};
    bool keep_blocked_ = false;
};

/// Receives signals on an io_context's thread. They stay blocked in this thread and in those it
/// starts, even after destruction, so that a late signal does not change the exit code of an ending
/// process.
///
/// Uses a signalfd, because boost::asio::signal_set does not report a failed registration with the
/// io_context, and would then never receive a signal.
class SignalReceiver {
  public:
    /// Registers the signals. Errors: throws std::system_error, or that of Boost.
    SignalReceiver(boost::asio::io_context& io, std::initializer_list<int> signals);

    /// Calls `take` for each signal, from now on.
    void listen(std::function<void(int signal)> take);

  private:
    void wait();

    boost::asio::posix::stream_descriptor descriptor_;
    std::function<void(int signal)> take_;
};

/// Tells the service manager, if there is one ($NOTIFY_SOCKET), that this process is the service's
/// main process and ready. Source: sd_notify(3).
void notify_ready();

/// Sends the service manager a state, as in sd_notify(3). Returns false if there is no manager or
/// the send fails.
bool notify_service(std::string_view state);

} // namespace tw::process
