#pragma once

#include "proxy/base/descriptors.h"

#include <csignal>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace tw::process {

/// Calls a function whenever a descriptor is readable, on the io_context's thread.
class ReadableWatch {
  public:
    explicit ReadableWatch(boost::asio::io_context& io) : descriptor_{io} {}

    /// Starts to watch a duplicate of the descriptor. Errors: throws boost::system::system_error.
    void start(int descriptor, std::function<void()> on_readable);

    /// Stops watching. `on_readable` may call this function.
    void stop();

  private:
    void await_readable();

    boost::asio::posix::stream_descriptor descriptor_;
    std::function<void()> on_readable_;
    std::uint64_t changes_ = 0; ///< number of calls of start() and stop()
};

/// Blocks the signals that end or reload a run while the run is constructed. A signal that arrives
/// in this time is later delivered to the run's SignalReceiver. The destructor unblocks the
/// signals, unless keep_signals_blocked() was called.
class BlockedSignals {
  public:
    BlockedSignals();
    ~BlockedSignals();
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

    /// Makes the destructor leave the signals blocked, because a SignalReceiver receives them.
    void keep_signals_blocked() { keep_blocked_ = true; }

  private:
    sigset_t previous_mask_{};
    bool keep_blocked_ = false;
};

/// Receives signals on an io_context's thread. The signals stay blocked in the constructing thread
/// and in threads that it starts, even after destruction, so that a late signal does not change the
/// exit code of an ending process.
///
/// Uses a signalfd instead of a boost::asio::signal_set, which does not report that it could not be
/// registered with the io_context.
class SignalReceiver {
  public:
    /// Blocks the signals and starts to collect them. Errors: throws std::system_error or
    /// boost::system::system_error.
    SignalReceiver(boost::asio::io_context& io, std::initializer_list<int> signals);

    /// Sets the function that is called for each signal, including signals that arrived since the
    /// constructor.
    /// Must be called before the io_context runs.
    void set_handler(std::function<void(int signal)> handler) { handler_ = std::move(handler); }

  private:
    base::UniqueFd signals_;
    ReadableWatch watch_;
    std::function<void(int signal)> handler_;
};

/// Tells the service manager that this process is the service's main process and is ready. Does
/// nothing without $NOTIFY_SOCKET, and ignores errors. Source: sd_notify(3).
void notify_service_ready();

} // namespace tw::process
