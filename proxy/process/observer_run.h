#pragma once

#include "proxy/base/clock.h"
#include "proxy/channel/process_link.h"
#include "proxy/channel/shared_run_memory.h"
#include "proxy/demo/demo_sink.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/pipeline/pipeline.h"
#include "proxy/pipeline/record_outputs.h"
#include "proxy/pipeline/worker.h"
#include "proxy/pipeline/world_run.h"
#include "proxy/process/live_page.h"
#include "proxy/process/server_probe.h"
#include "proxy/process/signals.h"
#include "proxy/sink/console.h"
#include "proxy/sink/json_lines.h"
#include "proxy/store/file_output.h"
#include "proxy/store/file_queue.h"
#include "proxy/wire/message.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// Reports when any server stops answering or answers again. Has a SilenceReporter for each server.
class SilenceReporters {
  public:
    /// Must be called once a second. `page` may be null.
    void report_changes(boost::asio::io_context& io, const channel::SharedProcessData& shared,
                        LivePage* page);

    /// Returns a text such as "1 server silent since 12:00:03"; empty if all servers answer.
    /// `has_date`: the text includes the date.
    [[nodiscard]] std::string describe_silent_servers(bool has_date) const;

    void stop();

  private:
    std::map<relay::ServerIndex, SilenceReporter> reports_;
    std::map<relay::ServerIndex, ServerProbe> probes_;
};

/// The settings of an observer run. The objects to which its members point must outlive the run.
struct ObserverOptions {
    pipeline::Config
        config{}; ///< ObserverRun sets `inspect.learned_sizes` and `inspect.memory_budget`
    std::vector<std::filesystem::path> map_folders{};
    /// The folder for maps that servers send; empty: such maps are stored in memory only.
    std::filesystem::path map_cache{};
    /// false: traffic is not inspected; only the live page and the summary exist.
    bool inspect = true;
    bool requests_full_snapshots =
        false; ///< true: requests a full snapshot if snapshots cannot be decoded
    store::OutputFile* records_file = nullptr; ///< output of records; null: no such output
    pipeline::BusTarget bus{};                 ///< bus that gets the records, too
    store::OutputFile* capture = nullptr;      ///< capture file; null: no such file
    store::OutputFile* summary = nullptr;      ///< output of the summary; null: no such output
    /// Output of human-readable status and findings; null: no such output.
    sink::BoundedWaitStream* console = nullptr;
    /// Returns the command line that explains a finding from the recording. It is printed with the
    /// table of findings. Empty if no file has all records.
    sink::FindingLines::ExplainCommandMaker explain_command{};
    std::string_view flight_flag{}; ///< the flag that adds a flight recorder
    /// The live page's settings; nullopt: no page. The page opens when its sockets have arrived
    /// from the relay.
    std::optional<PageOptions> page{};
    std::vector<web::HttpAddress> page_addresses{};

    [[nodiscard]] bool writes_worlds() const { return inspect && config.writes_worlds(); }
};

/// The observer's connection to the relay's process.
struct ObserverChannel {
    std::uint32_t number = 1; ///< the number of this observer process within the run, from 1
    /// true: the observer must not inspect before it receives ControlMessage::start_inspecting.
    bool waits_for_previous = false;
    channel::ProcessLink link; ///< connection on which the start message was already received
    base::UniqueFd memory;     ///< descriptor of the shared memory; see SharedRunMemory
};

struct ObserverResult {
    /// False if the run ended before the observer received ControlMessage::start_inspecting.
    bool has_inspected = true;
    /// The combined results of all workers, without session checkpoints.
    pipeline::WorkerResult worker_result{};
    std::uint64_t num_lost_records = 0; ///< number of records and packets missing in any output
    /// Number of records that could not be written to the file of records.
    std::uint64_t num_records_missing_in_file = 0;
    std::chrono::nanoseconds duration{};
};

/// The main object of an observer process. It has the workers that inspect the rings' traffic, the
/// outputs and the live page. The run ends when the relay's process requests this or has ended.
class ObserverRun {
  public:
    /// Opens the outputs.
    /// Errors: std::system_error; std::runtime_error if `observer_channel` is invalid.
    ObserverRun(ObserverOptions options, ObserverChannel observer_channel);

    /// Inspects until the relay's process requests the end or has ended, then finishes the outputs.
    /// Must be called once.
    [[nodiscard]] ObserverResult inspect_until_stopped();

  private:
    void open_page();
    void begin_inspecting();
    void follow_previous_observer(const base::UniqueFd& checkpoint);
    void on_messages();
    void handle_message(channel::ProcessLink::Message& message);
    [[nodiscard]] pipeline::WorkerOutputs open_outputs();
    void await_next_second();
    void on_second();
    void show_status();
    void print_findings_at_end();
    [[nodiscard]] sink::StatusNotes status_notes() const;

    void write_flight_recording(std::uint32_t session);
    void stop();
    void write_summary(const ObserverResult& result);
    [[nodiscard]] ObserverResult finish_outputs();

    ObserverOptions options_;
    std::uint32_t number_;
    bool waits_for_previous_;
    channel::ProcessLink link_;
    channel::SharedRunMemory shared_;
    /// The previous observer's checkpoints. The workers read them.
    pipeline::SessionCheckpoints checkpoints_;
    base::UniqueFd checkpoint_file_;
    inspect::MemoryBudget memory_;
    pipeline::MapFolders maps_;
    std::optional<pipeline::QueuedOutputFile> records_;
    pipeline::RecordOutputs lines_; ///< all record outputs: file and bus
    std::optional<pipeline::QueuedOutputFile> capture_;
    pipeline::FileQueues written_;
    std::optional<sink::Console> console_;
    /// Merges the snapshots that the workers decode; nullopt if no worlds are written.
    std::optional<pipeline::WorldThread> worlds_;
    std::vector<std::unique_ptr<pipeline::Worker>> workers_;
    std::optional<ImpairmentControl> impairment_;
    std::optional<web::PageFeed> feed_;
    boost::asio::io_context io_{1};
    std::optional<LivePage> page_;
    /// The token of the latest ControlMessage::page_token; nullopt if none was received.
    std::optional<PageToken> token_;
    ReadableWatch messages_{io_};
    boost::asio::steady_timer second_timer_{io_};
    base::Stopwatch run_time_;
    base::Stopwatch shown_; ///< the time since the latest status line
    /// True if the first status was written to an output that is not a terminal.
    bool status_shown_ = false;
    /// True if the run is ending. The timer's handler must then not restart the timer. (A handler
    /// can run without an error although its timer was cancelled.)
    bool stopping_ = false;
    SilenceReporters silence_reporters_;
};

} // namespace tw::process
