#pragma once

#include "proxy/admin/admin.h"
#include "proxy/run/impairment_control.h"
#include "proxy/run/map_folders.h"
#include "proxy/run/page_recordings.h"
#include "proxy/run/page_token.h"
#include "proxy/run/record_outputs.h"
#include "proxy/run/recording_folders.h"
#include "proxy/run/relay_pulse.h"
#include "proxy/run/relay_window.h"
#include "proxy/run/server_probe.h"
#include "proxy/sink/queued_output.h"
#include "proxy/wire/mod_description.h"

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

namespace tw::run {

/// What the live page of a run is to be.
struct PageOptions {
    std::vector<admin::Listening> listening{};
    admin::AdminOptions admin{};
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
        const RelayWindow* relay;
        ImpairmentControl* impairment;
        const admin::Board* board;
        admin::Feed* feed;
        MapFolders* maps;
        const wire::ModDescription* mod;
        std::uint32_t observer; ///< which one of the run this is
        const sink::RecordTarget* file;
        const sink::QueuedOutput* queue;
        const RecordOutputs* outputs;
        PageRecordings* recordings = nullptr; ///< null: the page records nothing
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
    void show_silence(relay::ServerIndex server, const std::optional<admin::SilenceState>& silence);

  private:
    void tell_address(const admin::HttpAddress& where) const;
    [[nodiscard]] admin::State state() const;
    [[nodiscard]] admin::Health live() const;
    void ask_ready(std::function<void(admin::Health)> done);
    void probe_servers();
    void conclude_probe(bool answered, std::uint64_t datagrams_before);
    void answer_waiting();
    void add_servers(admin::State& state) const;
    [[nodiscard]] std::optional<std::string> explain(std::uint32_t session,
                                                     std::int64_t tick) const;
    /// False: no such session is open.
    [[nodiscard]] bool write_flight(std::uint32_t session) const;
    [[nodiscard]] admin::Sources sources();
    [[nodiscard]] admin::RecordingSources recording_sources();
    [[nodiscard]] std::shared_ptr<const map::Physics> map_of(std::uint32_t session) const;

    /// Who waits to hear how the relay is. Kept here and not in what is posted to the io_context,
    /// because whoever waits must be gone before the server is.
    struct Waiting {
        std::mutex mutex;
        std::vector<std::function<void(admin::Health)>> done;
    };

    Parts parts_;
    PageToken token_;
    bool log_is_private_;
    std::function<std::string(std::string_view, std::int64_t, std::int64_t)> tell_story_;
    bool open_reading_;
    RecordingFolders folders_; ///< used on the server's thread only
    std::string host_;         ///< a name it goes by; empty: none is known
    mutable std::mutex mutex_; ///< of what the server's thread reads and another one writes
    std::map<relay::ServerIndex, admin::SilenceState> silence_;
    RelayPulse pulse_;
    std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
    /// Used on the io_context's thread only; a tap has none. Those of servers that were taken out stay.
    std::map<relay::ServerIndex, ServerProbe> probes_;
    admin::Health probed_; ///< what came of it last, and when; on the same thread
    std::chrono::steady_clock::time_point probed_at_;
    admin::Admin admin_;
};

} // namespace tw::run
