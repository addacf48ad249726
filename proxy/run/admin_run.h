#pragma once

#include "proxy/admin/admin.h"
#include "proxy/run/impairment_control.h"
#include "proxy/run/relay_window.h"
#include "proxy/run/server_probe.h"
#include "proxy/sink/file_output.h"
#include "proxy/sink/queued_output.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace tw::run {

/// The live page of a run: gathers what it shows.
class AdminRun {
  public:
    /// All have to outlive it, which has to end on the io_context's thread; `file` and `queue` may
    /// be null.
    struct Parts {
        boost::asio::io_context* io;
        const RelayWindow* relay;
        ImpairmentControl* impairment;
        const admin::Board* board;
        const sink::FileOutput* file;
        const sink::QueuedOutput* queue;
        bool inspecting;
    };

    /// Binds. Errors: admin::ListenError.
    AdminRun(const admin::AdminOptions& options, Parts parts);
    ~AdminRun(); // NOLINT(bugprone-exception-escape): see there
    AdminRun(const AdminRun&) = delete;
    AdminRun& operator=(const AdminRun&) = delete;
    AdminRun(AdminRun&&) = delete;
    AdminRun& operator=(AdminRun&&) = delete;

    void start();

    /// From any thread: the server does not answer; nothing: it does.
    void show_silence(const std::optional<admin::SilenceState>& silence);

  private:
    [[nodiscard]] admin::State state() const;
    void ask_health(std::function<void(admin::Health)> done);
    void probe_health();
    [[nodiscard]] admin::Sources sources();

    /// Who waits to hear how the relay is. Kept here and not in what is posted to the io_context,
    /// because whoever waits must be gone before the server is.
    struct Waiting {
        std::mutex mutex;
        std::vector<std::function<void(admin::Health)>> done;
    };

    Parts parts_;
    mutable std::mutex silence_mutex_;
    std::optional<admin::SilenceState> silence_;
    std::int64_t started_ms_;
    std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
    ServerProbe probe_; ///< used on the io_context's thread only
    admin::Admin admin_;
};

} // namespace tw::run
