#pragma once

#include "proxy/channel/process_link.h"
#include "proxy/channel/shared_block.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/pipeline/page_recordings.h"
#include "proxy/pipeline/record_outputs.h"
#include "proxy/process/server_probe.h"
#include "proxy/process/state_folder.h"
#include "proxy/relay/counters.h"
#include "proxy/sink/file_output.h"
#include "proxy/sink/json_lines.h"
#include "proxy/web/admin.h"
#include "proxy/web/http_stream.h"
#include "proxy/wire/message_set.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <tl/expected.hpp>

namespace tw::process {

/// Impairs the relay's lines while it runs, and writes into the records how. Safe for several
/// threads.
class ImpairmentControl {
  public:
    /// `records` may be null: nothing is written. Writes the record of an impairment that is there
    /// from the start.
    ImpairmentControl(channel::RelayWindow& relay, sink::Output* records,
                      const sink::JsonOptions& options);

    /// Changes it, to what relay::parse_impairment reads; the seed stays. Returns what is in force
    /// now.
    /// Errors: one line that says what is wrong with the text, that the relay cannot be asked, or
    /// that the run is over.
    [[nodiscard]] tl::expected<std::string, std::string> set(std::string_view text);

    /// As relay::parse_impairment reads it.
    [[nodiscard]] std::string settings() const { return relay::to_string(relay_->impairment()); }

    /// The records go to this segment now, counted from 1. Writes down again in each further one
    /// what is in force, if anything is: it can be read alone.
    void on_segment(std::uint32_t number);

    /// To be called before the records end: no change is taken any more.
    void finish();

  private:
    void write(const relay::Impairment& impairment);
    void write_record(const relay::Impairment& impairment, bool again);

    channel::RelayWindow* relay_;
    sink::Output* records_;
    sink::JsonOptions options_;
    std::uint32_t segment_ = 1;
    std::mutex mutex_;
    bool finished_ = false;
};

/// What became of the datagrams on impaired lines; nothing when none were.
[[nodiscard]] std::optional<std::array<record::FateStats, 2>>
impaired_totals(const relay::Counters& counters);

/// Tells from the relay's totals, looked at now and then, whether each of its threads turns.
class RelayLiveness {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// A thread that has not turned for so long hangs: it turns once a second at least.
    static constexpr std::chrono::seconds kPatience{5};

    /// To be called once a second, at most.
    void look(Time now, const relay::Observation& observation, unsigned threads);

    /// Whether all threads turned lately. False before the first look.
    [[nodiscard]] bool beats(Time now) const noexcept;

  private:
    struct Thread {
        std::uint64_t turns = 0;
        Time moved{};
    };

    std::array<Thread, relay::kMaxThreads> threads_{};
    unsigned num_threads_ = 0;
};

/// What the live page of a run is to be.
struct PageOptions {
    std::vector<web::Listening> listening{};
    web::AdminOptions admin{};
    PageToken token{};
    bool log_is_private = false; ///< only people see it: the token may stand in it
    std::vector<std::filesystem::path>
        recording_folders{}; ///< what is in them can be had from the page
    /// The story of the findings about a session's snapshot of this tick, from the lines of records.
    std::function<std::string(std::string_view lines, std::int64_t session, std::int64_t tick)>
        tell_story{};
};

/// The live page of a run: gathers what it shows.
class AdminRun {
  public:
    /// All have to outlive it, which has to end on the io_context's thread; `file` and `queue` may
    /// be null.
    struct Parts {
        boost::asio::io_context* io;
        const channel::RelayWindow* relay;
        ImpairmentControl* impairment;
        const web::StatusBoard* board;
        web::Feed* feed;
        pipeline::MapFolders* maps;
        const wire::ModDescription* mod;
        std::uint32_t observer; ///< which one of the run this is
        const sink::OutputFile* file;
        const sink::QueuedOutput* queue;
        const pipeline::RecordOutputs* outputs;
        pipeline::PageRecordings* recordings = nullptr; ///< null: the page records nothing
        /// Writes what the flight recorder keeps of a session, or with 0 of all; none: there is none.
        std::function<void(std::uint32_t session)> write_flight{};
        bool inspecting = true;
    };

    AdminRun(PageOptions options, Parts parts);
    ~AdminRun(); // NOLINT(bugprone-exception-escape): see there
    AdminRun(const AdminRun&) = delete;
    AdminRun& operator=(const AdminRun&) = delete;
    AdminRun(AdminRun&&) = delete;
    AdminRun& operator=(AdminRun&&) = delete;

    void start();

    /// To be called once a second: looks whether the relay's threads turn.
    void look();

    /// From now on this is the token.
    void set_token(const PageToken& token);

    /// From any thread: the server does not answer; nothing: it does.
    void show_silence(relay::ServerIndex server, const std::optional<web::SilenceState>& silence);

  private:
    void tell_address(const web::HttpAddress& where) const;
    [[nodiscard]] web::State state() const;
    [[nodiscard]] web::Health live() const;
    void ask_ready(std::function<void(web::Health)> done);
    void probe_servers();
    void conclude_probe(bool answered, std::uint64_t datagrams_before);
    void answer_waiting();
    void add_servers(web::State& state) const;
    [[nodiscard]] std::optional<std::string> explain(std::uint32_t session,
                                                     std::int64_t tick) const;
    /// False: no such session is open.
    [[nodiscard]] bool write_flight(std::uint32_t session) const;
    [[nodiscard]] web::Sources sources();
    [[nodiscard]] web::RecordingSources recording_sources();
    [[nodiscard]] std::shared_ptr<const map::Physics> map_of(std::uint32_t session) const;

    /// Who waits to hear how the relay is. Kept here and not in what is posted to the io_context,
    /// because whoever waits must be gone before the server is.
    struct Waiting {
        std::mutex mutex;
        std::vector<std::function<void(web::Health)>> done;
    };

    Parts parts_;
    PageToken token_;
    bool log_is_private_;
    std::function<std::string(std::string_view, std::int64_t, std::int64_t)> tell_story_;
    bool open_reading_;
    pipeline::RecordingFolders folders_; ///< used on the server's thread only
    std::string host_;                   ///< a name it goes by; empty: none is known
    mutable std::mutex mutex_; ///< of what the server's thread reads and another one writes
    std::map<relay::ServerIndex, web::SilenceState> silence_;
    RelayLiveness pulse_;
    std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
    /// Used on the io_context's thread only; a tap has none. Those of servers that were taken out stay.
    std::map<relay::ServerIndex, ServerProbe> probes_;
    web::Health probed_; ///< what came of it last, and when; on the same thread
    std::chrono::steady_clock::time_point probed_at_;
    web::Admin admin_;
};

/// A live page that cannot be opened before its run goes on: another process, as the observer before
/// this one, has its port or socket until then.
struct LatePageOptions {
    std::vector<web::HttpAddress> where{};
    /// What it is to be, at these sockets. May throw.
    std::function<PageOptions(std::vector<web::Listening> listening)> page{};
};

/// Asks the relay's process for its sockets, again and again while something is in the way: who looks
/// is confined by now, and may not make any where files are.
class LatePage {
  public:
    /// Between an answer that there are none and the next question.
    static constexpr std::chrono::milliseconds kPause{500};

    /// `open` is called once it has them; what it throws counts as in the way. All have to outlive it.
    LatePage(boost::asio::io_context& io, const channel::ProcessLink& link, LatePageOptions options,
             std::function<void(PageOptions page)> open)
        : link_{&link}, options_{std::move(options)}, open_{std::move(open)}, timer_{io} {}

    void ask();

    /// What the relay's process says with ControlMessage::page.
    void on_answer(channel::ProcessLink::Message& message);

    void stop();

  private:
    void try_again(const std::string& trouble);

    const channel::ProcessLink* link_;
    LatePageOptions options_;
    std::function<void(PageOptions)> open_;
    boost::asio::steady_timer timer_;
    std::vector<web::Listening> gathered_;
    std::string trouble_; ///< why it is not open yet, as it was said
    bool over_ = false;
};

} // namespace tw::process
