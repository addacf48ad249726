#pragma once

#include "proxy/admin/admin.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/record/ledger.h"
#include "proxy/record/stats.h"
#include "proxy/relay/relay.h"
#include "proxy/run/admin_run.h"
#include "proxy/run/impairment_control.h"
#include "proxy/run/map_folders.h"
#include "proxy/run/server_report.h"
#include "proxy/run/stopwatch.h"
#include "proxy/run/worker.h"
#include "proxy/sink/console.h"
#include "proxy/sink/file_output.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/queued_output.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::run {

/// When a run ends by itself.
struct TimeLimit {
    std::chrono::duration<double> after{};
    std::string reason; ///< what the log says then
};

/// What a run of the proxy is to do.
struct ProxyOptions {
    relay::Options relay;
    const snapshot::ObjectSet* objects = nullptr; ///< has to outlive the run
    std::vector<std::filesystem::path> map_folders{};
    std::filesystem::path map_cache{}; ///< empty: maps from the wire are kept in memory only

    bool inspect = true;              ///< false: only forward
    bool messages = true;             ///< a record for each message
    bool ledger = false;              ///< book where every byte goes
    std::size_t ring_bytes = 0;       ///< copies that may wait, for each thread
    sink::FileOutput* file = nullptr; ///< where records go; null: nowhere. Has to outlive the run
    sink::JsonOptions json{};
    std::FILE* console = nullptr; ///< what happens, a line a second; null: nothing
    std::optional<filter::Filter> filter{};
    std::optional<filter::Filter> console_filter{};
    std::vector<filter::Expectation> expectations{};
    std::string pseudonym_key{}; ///< empty: client addresses as they are
    std::optional<admin::AdminOptions> page{};
    std::optional<TimeLimit> time_limit{};
};

/// What came of a run.
struct ProxyResult {
    record::SessionStats totals{};
    std::uint32_t sessions = 0;
    record::Ledger ledger{};
    std::vector<filter::ExpectationResult> expectations{};
    std::uint64_t lost_records = 0; ///< that could not be written
    std::chrono::nanoseconds duration{};
};

/// A live run of the proxy wired together: relay, workers, outputs, live page, signals.
///
/// SIGINT and SIGTERM end it; SIGUSR1 asks for the totals so far.
class ProxyRun {
  public:
    /// Binds everything; clients' datagrams wait until run().
    /// Errors: relay::StartError; admin::ListenError of the live page.
    explicit ProxyRun(ProxyOptions options);

    /// The mode in use: never `automatic`.
    [[nodiscard]] relay::ClientAddress client_address() const { return relay_->client_address(); }

    /// Forwards until a signal comes or the time is over, then writes what is left. From its end
    /// on signals wait for the end of the process. Once.
    [[nodiscard]] ProxyResult run();

  private:
    [[nodiscard]] PipelineOptions pipeline();
    void open_page();
    void await_end();
    void await_report_signal();
    void every_second(const boost::system::error_code& error);
    void show(bool last);
    void check_disk();
    void check_sessions();
    void stop(std::string_view why);
    void write_summary(const ProxyResult& result);
    [[nodiscard]] ProxyResult finish();

    ProxyOptions options_;
    MapFolders maps_;
    std::optional<sink::QueuedOutput> queue_;
    std::optional<sink::Console> console_;
    std::atomic<std::uint32_t> numbers_{0};
    std::vector<std::unique_ptr<Worker>> workers_;
    std::optional<relay::Relay> relay_;
    std::optional<ImpairmentControl> impairment_;
    std::optional<admin::Board> board_;
    boost::asio::io_context io_{1};
    std::optional<AdminRun> page_;
    boost::asio::steady_timer second_timer_{io_};
    boost::asio::steady_timer end_timer_{io_};
    boost::asio::signal_set end_signals_;
    boost::asio::signal_set report_signal_;
    Stopwatch running_;
    Stopwatch shown_;
    /// What is due at the same moment comes after all with no error, and must not wait again.
    bool stopping_ = false;
    bool disk_error_reported_ = false;
    std::uint64_t failed_sessions_reported_ = 0;
    ServerReport server_report_;
};

} // namespace tw::run
