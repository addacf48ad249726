#pragma once

#include "proxy/channel/shared_run_memory.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/pipeline/page_recordings.h"
#include "proxy/pipeline/record_outputs.h"
#include "proxy/process/server_probe.h"
#include "proxy/process/state_folder.h"
#include "proxy/relay/counters.h"
#include "proxy/sink/json_lines.h"
#include "proxy/store/file_output.h"
#include "proxy/web/admin.h"
#include "proxy/web/sockets.h"
#include "proxy/wire/message.h"

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

#include <tl/expected.hpp>

namespace tw::process {

/// Changes the impairment of the running relay, and writes a record for each change. Thread-safe.
class ImpairmentControl {
  public:
    /// A function that requests an impairment from the relay. `settings`: text for
    /// relay::parse_impairment(). Returns false if the relay cannot be reached.
    using SendRequest = std::function<bool(const std::string& settings)>;

    /// If `facts` contains an active impairment, writes it to `records`. `records`: null if no
    /// records are written.
    ImpairmentControl(const channel::RelayFacts& facts, SendRequest send_request,
                      sink::Output* records, const sink::JsonOptions& options);

    /// Sets the impairment. `text`: for relay::parse_impairment(). The seed does not change.
    /// Returns the new settings as text. Errors: one line for the user, if the text is invalid, the
    /// relay cannot be reached, or reject_further_changes() was called.
    [[nodiscard]] tl::expected<std::string, std::string> set_impairment(std::string_view text);

    /// Returns the current settings as text for relay::parse_impairment().
    [[nodiscard]] std::string settings_text() const;

    /// Must be called when the output begins a new segment. Writes the active impairment into the
    /// segment, so that each segment can be read alone. `number`: the segment's number, from 1.
    void on_segment(std::uint32_t number);

    /// Rejects later changes. Must be called before the record output ends.
    void reject_further_changes();

  private:
    void log_and_record_settings();
    void write_settings_record(bool is_repetition);

    bool is_tap_;
    SendRequest send_request_;
    sink::Output* records_;
    sink::JsonOptions options_;
    std::uint32_t segment_ = 1;
    mutable std::mutex mutex_;     ///< guards the members below
    relay::Impairment impairment_; ///< the impairment at the start, or the one requested last
    bool rejects_changes_ = false;
};

/// Returns the relay's counters of impaired datagrams; nullopt if no datagram was impaired.
[[nodiscard]] std::optional<std::array<record::ImpairmentStats, 2>>
make_impairment_stats(const relay::Counters& counters);

/// Detects hanging relay threads from the relay's counters.
class RelayHangDetector {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// A thread hangs if its loop counter does not change for this long. A working thread changes
    /// its counter at least once a second.
    static constexpr std::chrono::seconds kHangTime{5};

    /// Reads the counters. Must be called at most once a second.
    void update(Time now, const relay::ObserverSharedMemory& observation, unsigned threads);

    /// Returns whether no thread hangs. Returns false before the first update().
    [[nodiscard]] bool is_alive(Time now) const noexcept;

  private:
    struct ThreadProgress {
        std::uint64_t loop_iterations = 0;
        Time last_progress{};
    };

    std::array<ThreadProgress, relay::kMaxThreads> threads_{};
    unsigned num_threads_ = 0;
};

struct PageOptions {
    std::vector<web::ListeningSocket> listening{};
    web::AccessOptions access{};
    PageToken token{};
    /// True if the log goes to a terminal, so that it may contain the token.
    bool is_log_on_terminal = false;
    /// Folders whose recordings can be downloaded from the page.
    std::vector<std::filesystem::path> recording_folders{};
    /// Explains the findings about a session's snapshot of this tick. `lines`: record lines.
    std::function<std::string(std::string_view lines, std::int64_t session, std::int64_t tick)>
        explain_finding{};
};

/// Starts a page's web server, and logs where the page is and who can read it. `page`: the page's
/// name in the log. `allows_changes`: viewers with the token can make changes.
void start_page(web::AdminServer& server, const PageOptions& options, std::string_view page,
                bool allows_changes);

/// The live page of a run. Collects the data that the page shows.
class LivePage final : public pipeline::RecordPageData {
  public:
    /// Objects that the page uses. They must outlive the LivePage. `file` and `queue` may be null.
    struct Dependencies {
        const channel::SharedProcessData* shared;
        ImpairmentControl* impairment;
        web::PageFeed* feed;
        pipeline::MapFolders* maps;
        const wire::ModDescription* mod;
        std::uint32_t observer;        ///< the number of this observer process within the run
        const store::OutputFile* file; ///< of the records; null if there is none
        const store::OutputFile* capture = nullptr; ///< null if there is none
        const store::QueuedOutput* queue;
        const pipeline::RecordOutputs* outputs;
        /// Null if viewers cannot start recordings from the page.
        pipeline::PageRecordings* recordings = nullptr;
        /// A function that writes a session's flight recording, or those of all sessions if
        /// `session` is 0. Empty without a flight recorder.
        std::function<void(std::uint32_t session)> write_flight_recording{};
        bool is_inspecting = true;
    };

    LivePage(PageOptions options, Dependencies parts);

    // NOLINTNEXTLINE(bugprone-exception-escape): a failing lock or join ends the process
    ~LivePage() override { admin_.stop(); }

    void start();

    /// Checks whether the relay's threads hang. Must be called once a second.
    void check_relay_threads();

    void set_token(const PageToken& token);

    /// Shows a server's silence; nullopt: the server answers. Callable from any thread.
    void set_silence(relay::ServerIndex server, const std::optional<web::ServerSilence>& silence);

  private:
    [[nodiscard]] web::PageFeed* page_feed() override {
        return parts_.is_inspecting ? parts_.feed : nullptr;
    }

    [[nodiscard]] web::RunState state() const override;
    [[nodiscard]] std::uint64_t written_bytes() const;
    [[nodiscard]] web::Health check_liveness() const override;
    void check_readiness(std::function<void(web::Health)> done) override;

    [[nodiscard]] tl::expected<void, std::string> set_impairment(const std::string& text) override {
        return parts_.impairment->set_impairment(text).map([](const std::string&) {});
    }

    [[nodiscard]] bool write_flight_recording(std::uint32_t session) override;

    [[nodiscard]] tl::expected<void, std::string> switch_recording(web::RecordingKind kind,
                                                                   bool on) override {
        return parts_.recordings != nullptr ? parts_.recordings->switch_recording(kind, on)
                                            : PageData::switch_recording(kind, on);
    }

    [[nodiscard]] std::optional<std::vector<web::RecordedFile>> list_recordings() const override {
        return folders_.empty() ? std::nullopt : std::optional{folders_.list_recordings()};
    }

    [[nodiscard]] std::shared_ptr<const web::ServedFile>
    open_recording(std::string_view name) const override {
        return folders_.open_recording(name);
    }

    [[nodiscard]] std::optional<std::string> explain_finding(std::uint32_t session,
                                                             std::int64_t tick) const override;
    [[nodiscard]] inspect::MapSearchResult map_of_session(std::uint32_t session) const override;

    void probe_servers();
    void finish_probe(bool answered, std::uint64_t datagrams_before);
    void add_servers(web::RunState& state) const;

    Dependencies parts_;
    PageOptions options_;
    pipeline::RecordingFolders folders_; ///< used only on the web server's thread
    /// The highest number of written bytes so far. The page shows it as a counter, which must not
    /// fall. The real number falls if a full disk makes a recording cut off an unfinished part.
    mutable std::uint64_t written_bytes_ = 0;
    mutable std::mutex mutex_; ///< guards silence_, hang_detector_ and written_bytes_
    std::map<relay::ServerIndex, web::ServerSilence> silence_;
    RelayHangDetector hang_detector_;
    web::AdminServer admin_;

    // Only the web server's thread uses the members below. They must be destroyed before `admin_`,
    // but only after ~LivePage() has ended that thread.
    web::Health probe_result_; ///< the result of the latest probe
    std::chrono::steady_clock::time_point probed_at_;
    /// Callbacks that wait for the result of the current probe.
    std::vector<std::function<void(web::Health)>> waiting_;
    /// A probe for each server, including removed servers. Empty for a tap.
    std::map<relay::ServerIndex, ServerProbe> probes_;
};

} // namespace tw::process
