#pragma once

#include "proxy/base/clock.h"
#include "proxy/channel/process_link.h"
#include "proxy/channel/shared_block.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/pipeline/pipeline.h"
#include "proxy/pipeline/record_outputs.h"
#include "proxy/pipeline/worker.h"
#include "proxy/pipeline/world_run.h"
#include "proxy/process/live_page.h"
#include "proxy/process/server_probe.h"
#include "proxy/sink/console.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/file_output.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/json_lines.h"
#include "proxy/wire/message.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// One ServerReport for each server.
class ServerReports {
  public:
    /// Call it once a second; `console` and `page` may be null.
    void check(boost::asio::io_context& io, const channel::RelayWindow& relay,
               sink::Console* console, LivePage* page);

    /// Stops all probes.
    void stop();

  private:
    std::map<relay::ServerIndex, ServerReport> reports_;
    std::map<relay::ServerIndex, ServerProbe> probes_;
};

/// The settings of an observer run. What it points to must outlive the run.
struct ObserverOptions {
    pipeline::Config config{}; ///< `inspect.learned` and `inspect.memory` are set by the run
    std::vector<std::filesystem::path> map_folders{};
    /// empty: maps that the server sends are kept in memory only
    std::filesystem::path map_cache{};
    bool inspect = true;                   ///< false: live page and summary only
    bool resync = false;                   ///< request a full snapshot if none can be decoded
    sink::OutputFile* file = nullptr;      ///< output of records; null: none
    pipeline::BusTarget bus{};             ///< a second output of records
    sink::OutputFile* capture = nullptr;   ///< capture file; null: none
    sink::FileOutput* summary = nullptr;   ///< output of the summary only; null: none
    sink::PromptStream* console = nullptr; ///< status and findings for people; null: none
    sink::FindingLines::ExplainCommand explain{}; ///< null if records cannot be read back
    std::optional<PageOptions> page{};
    /// The page that a waiting observer opens when it starts to inspect; nullopt: none.
    std::optional<LatePageOptions> late_page{};

    [[nodiscard]] bool makes_worlds() const { return inspect && config.makes_worlds(); }
};

/// The observer's connection to the relay's process.
struct ObserverChannel {
    std::uint32_t number = 1; ///< this observer's number within the run, from 1
    bool waits = false; ///< whether to wait for ControlMessage::start_inspecting before inspecting
    channel::ProcessLink link; ///< the start message was already received
    base::UniqueFd memory;     ///< shared memory; see SharedRun
};

struct ObserverResult {
    /// Whether the observer has inspected traffic. False if it still waited for
    /// ControlMessage::start_inspecting when the run ended.
    bool inspected = true;
    /// Results of all workers; the checkpoints are already handed over.
    pipeline::WorkerResult seen{};
    std::uint64_t lost_records = 0; ///< records that could not be written
    std::chrono::nanoseconds duration{};
};

/// The observer's process of a live run: workers that read the relay's rings, the outputs, and the
/// live page. It ends when the relay's process requests it or has ended.
class ObserverRun {
  public:
    /// Opens the outputs and the live page.
    /// Errors: std::system_error; std::runtime_error if `observer_channel` is invalid.
    ObserverRun(ObserverOptions options, ObserverChannel observer_channel);

    /// Inspects until the relay has ended, then finishes the outputs. Call it once.
    [[nodiscard]] ObserverResult run();

  private:
    struct NamedOutput {
        std::string_view name;  ///< see channel::kRecords
        sink::OutputFile* file; ///< null: none
    };

    void open_page(PageOptions options);
    void open_page_late();
    void start_inspecting(const base::UniqueFd& checkpoint);
    void await_message();
    void handle(channel::ProcessLink::Message& message);
    [[nodiscard]] pipeline::Outputs open_outputs();
    void every_second(const boost::system::error_code& error);
    void show_status();
    void show_end();
    [[nodiscard]] std::string recording_text() const;

    [[nodiscard]] std::array<NamedOutput, 3> named_outputs() const;

    [[nodiscard]] sink::QueuedOutput* queue() { return records_ ? &records_->queue() : nullptr; }

    void check_disk();
    void reopen(channel::ProcessLink::Message& message) const;
    void write_flight(std::uint32_t session);
    void stop();
    void write_summary(const ObserverResult& result);
    [[nodiscard]] ObserverResult finish();

    ObserverOptions options_;
    std::uint32_t number_;
    bool waits_;
    channel::ProcessLink link_;
    channel::SharedRun shared_;
    channel::RelayWindow relay_;
    pipeline::SessionCheckpoints checkpoints_; ///< read by the workers
    base::UniqueFd checkpoint_file_;
    inspect::MemoryBudget memory_;
    pipeline::MapFolders maps_;
    std::optional<pipeline::LiveOutput> records_;
    pipeline::RecordOutputs lines_; ///< all record outputs: file and bus
    std::optional<pipeline::LiveOutput> capture_;
    pipeline::WrittenFiles written_;
    std::optional<sink::Console> console_;
    std::optional<pipeline::WorldRun> worlds_; ///< gets the snapshots of all workers
    std::vector<std::unique_ptr<pipeline::Worker>> workers_;
    std::optional<ImpairmentControl> impairment_;
    std::optional<web::StatusBoard> board_;
    std::optional<web::PageFeed> feed_;
    boost::asio::io_context io_{1};
    std::optional<LivePage> page_;
    /// The latest token, if it differs from the page's initial one.
    std::optional<PageToken> token_;
    boost::asio::posix::stream_descriptor messages_{io_}; ///< waits for messages on link_
    boost::asio::steady_timer second_timer_{io_};
    std::optional<LatePage> late_page_;
    base::Stopwatch running_;
    base::Stopwatch shown_;     ///< time since the last status line
    bool status_shown_ = false; ///< the first status was shown, where there is no terminal
    /// Set at the end. A timer handler that is already due when its timer is cancelled runs without
    /// an error; it must then not wait again.
    bool stopping_ = false;
    ServerReports server_reports_;
};

} // namespace tw::process
