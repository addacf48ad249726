#pragma once

#include "proxy/base/clock.h"
#include "proxy/channel/process_link.h"
#include "proxy/channel/shared_block.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/pipeline/record_outputs.h"
#include "proxy/pipeline/worker.h"
#include "proxy/pipeline/worker_result.h"
#include "proxy/pipeline/world_run.h"
#include "proxy/process/admin_run.h"
#include "proxy/process/server_report.h"
#include "proxy/sink/console.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/file_output.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/json_lines.h"
#include "proxy/wire/message_set.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// What the observer of a run is to do.
struct ObserverOptions {
    /// What a mod describes; has to outlive the run.
    const wire::ModDescription* mod = &wire::ModDescription::standard();
    std::vector<std::filesystem::path> map_folders{};
    std::filesystem::path map_cache{}; ///< empty: maps from the wire are kept in memory only

    bool inspect = true;                 ///< false: the page and the summary only
    bool messages = true;                ///< a record for each message
    bool learn_sizes = false;            ///< decode with sizes that turn out to differ
    wire::CommandNames shown_commands{}; ///< chat commands whose arguments are no secret
    bool sees_all = true;                ///< false: a tap, which may lack datagrams
    bool resync = false;                 ///< ask for a full snapshot of sessions that are blind
    std::size_t memory_bytes = inspect::MemoryBudget::kDefaultBytes; ///< of sessions and maps
    bool ledger = false;                                             ///< book where every byte goes
    sink::OutputFile* file = nullptr; ///< where records go; null: nowhere. Has to outlive the run
    sink::OutputFile* bus = nullptr;  ///< the same, and besides that
    sink::FileOutput* summary =
        nullptr; ///< what else is open; null: nothing. Has to outlive the run
    sink::JsonOptions json{};
    std::uint64_t message_bytes = 0; ///< of the records of a session's messages, a second; 0: any
    sink::PromptStream* console = nullptr; ///< what happens, a line a second; null: nothing
    std::optional<filter::Filter> filter{};
    std::optional<filter::Filter> console_filter{};
    std::vector<filter::Expectation> expectations{};
    std::string pseudonym_key{}; ///< empty: client addresses as they are
    std::optional<sink::DemoOptions> demos{};
    pipeline::ViewChoice views = pipeline::ViewChoice::sessions;
    sink::OutputFile* capture = nullptr; ///< null: none. Has to outlive the run
    std::optional<filter::Filter> capture_filter{};
    std::optional<sink::FlightOptions> flight{};
    std::optional<pipeline::PageRecordingOptions> page_recordings{};
    std::optional<PageOptions> page{};
    /// Opened while it runs already, of one that waits when it looks; nothing: there is no such page.
    std::optional<LatePageOptions> late_page{};

    [[nodiscard]] bool makes_worlds() const {
        return inspect && views != pipeline::ViewChoice::sessions;
    }
};

/// How the relay's process reaches its observer: what it hands over at the start.
struct ObserverChannel {
    std::uint32_t number = 1;  ///< of this observer in the run, from 1
    bool waits = false;        ///< until the relay says ControlMessage::look, it looks at nothing
    channel::ProcessLink link; ///< whose greeting is over
    base::UniqueFd memory;     ///< see SharedRun
};

/// What came of a run.
struct ObserverResult {
    bool looked = true;             ///< false: it waited in vain to begin
    pipeline::WorkerResult seen{};  ///< by all workers; the checkpoints are handed over already
    std::uint64_t lost_records = 0; ///< that could not be written
    std::chrono::nanoseconds duration{};
};

/// The observer's process of a live run wired together: workers on the relay's rings, outputs, live
/// page. It ends when the relay says so, or is gone.
class ObserverRun {
  public:
    /// Opens everything.
    /// Errors: std::system_error, std::runtime_error for a post that is not as it should be.
    ObserverRun(ObserverOptions options, ObserverChannel post);

    /// Looks until the relay has ended, then writes what is left. Once.
    [[nodiscard]] ObserverResult run();

  private:
    [[nodiscard]] pipeline::PipelineOptions pipeline();
    void open_page(PageOptions options);
    void open_page_late();
    void look(const base::UniqueFd& checkpoint);
    void await_word();
    void obey(channel::ProcessLink::Message& message);
    void open_outputs();
    void make_worlds();
    void every_second(const boost::system::error_code& error);
    void show(bool last);

    [[nodiscard]] sink::QueuedOutput* queue() { return records_ ? &records_->queue() : nullptr; }

    void check_disk();
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
    pipeline::SessionCheckpoints inherited_; ///< the workers look into it
    base::UniqueFd checkpoint_file_;
    inspect::MemoryBudget memory_;
    inspect::LearnedSizes learned_; ///< by all workers' sessions
    pipeline::MapFolders maps_;
    std::optional<pipeline::LiveOutput> records_;
    pipeline::RecordOutputs outputs_; ///< of records: there, and on a bus
    std::optional<pipeline::LiveOutput> capture_;
    pipeline::WrittenFiles written_;
    std::optional<sink::Console> console_;
    std::optional<pipeline::WorldRun> worlds_; ///< behind the workers
    std::vector<std::unique_ptr<pipeline::Worker>> workers_;
    std::optional<ImpairmentControl> impairment_;
    std::optional<web::StatusBoard> board_;
    std::optional<web::Feed> feed_;
    boost::asio::io_context io_{1};
    std::optional<AdminRun> page_;
    std::optional<PageToken> token_; ///< the latest, where it is another than the page was to have
    boost::asio::posix::stream_descriptor words_{io_}; ///< the link's, to wait on
    boost::asio::steady_timer second_timer_{io_};
    std::optional<LatePage> late_page_;
    base::Stopwatch running_;
    base::Stopwatch shown_;
    /// What is due at the same moment comes after all with no error, and must not wait again.
    bool stopping_ = false;
    ServerReports server_reports_;
};

} // namespace tw::process
