#pragma once

#include "proxy/pipeline/page_recordings.h"
#include "proxy/process/live_page.h"
#include "proxy/record/stats.h"
#include "proxy/web/admin.h"
#include "proxy/web/page_feed.h"
#include "proxy/web/run_state.h"
#include "proxy/wire/message.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

namespace tw::filter {
struct RecordLineHead;
} // namespace tw::filter

namespace tw::process {

/// The URLs of the live pages of single servers.
struct ServerPageUrls {
    /// The URL of a server's page, in which {server} stands for the server's name. Empty: no pages.
    std::string pattern{};
    /// URLs by server name, for servers whose page has another URL than `pattern`.
    std::map<std::string, std::string, std::less<>> urls_by_server{};

    /// Returns the URL of a server's page; empty if unknown.
    [[nodiscard]] std::string url_of(std::string_view server) const;
};

struct RecordSender {
    std::string_view server; ///< the server's name on the bus
    std::string_view run{};  ///< the id of the twscope run that wrote the record; empty if unknown
};

/// The sessions, players and findings of many servers, derived from their record lines.
class FleetOverview {
  public:
    /// The most servers. Records of further servers are only counted.
    static constexpr std::size_t kMaxServers = 4096;
    /// The most open sessions of a server that are stored. Further sessions are ignored.
    static constexpr std::size_t kMaxSessions = 1024;
    /// The most twscope runs that are remembered for each server. Records of an earlier run may
    /// arrive after records of a later run.
    static constexpr std::size_t kMaxRuns = 8;

    /// Updates the state with a record line. Ignores lines that are not records. `now_ms`: the
    /// current Unix time on this machine.
    void add_record_line(const RecordSender& from, std::string_view line, std::int64_t now_ms);

    /// Sets the servers, findings, record count and sessions in `state`. `chosen`: the server whose
    /// sessions are included; empty: the sessions of all servers, up to
    /// web::StatusView::kMaxSessions.
    void fill_run_state(web::RunState& state, const ServerPageUrls& pages,
                        std::string_view chosen = {}) const;

  private:
    /// The id of a run and the number of a session in that run.
    using SessionKey = std::pair<std::string, std::uint32_t>;

    struct Server {
        std::map<SessionKey, web::SessionView> sessions{}; ///< open sessions
        std::deque<std::string> runs{}; ///< the ids of the server's latest twscope runs
        std::uint64_t records = 0;
        /// The Unix time of the server's latest record. It is never later than the record's
        /// arrival, because the server's clock may be wrong.
        std::int64_t last_record_ms = 0;
        std::uint64_t findings = 0;
        bool is_silent = false; ///< true if the server does not answer its clients
        web::ServerSilence silence{};
    };

    /// The sender of a record, its server, and the start of its line.
    struct RecordOrigin {
        const RecordSender& from;
        Server& server;
        const filter::RecordLineHead& head;
    };

    using Object = boost::json::object;

    [[nodiscard]] Server* find_or_add_server(std::string_view name,
                                             const filter::RecordLineHead& head);
    void add_record(const RecordOrigin& origin, std::string_view line);
    static void apply_session_record(const RecordOrigin& origin, const Object& record);
    void add_finding(const RecordOrigin& origin, const Object& record);
    [[nodiscard]] static web::SessionView* find_session(const RecordOrigin& origin);

    std::map<std::string, Server, std::less<>> servers_;
    record::FindingCounts findings_{};
    /// The latest findings of the severities warning and error.
    std::deque<web::FindingLine> recent_findings_;
    std::uint64_t records_ = 0;
    /// Number of records that were ignored because of kMaxServers.
    std::uint64_t num_ignored_records_ = 0;
};

/// Returns a record line for the page's log. Adds the server's name and removes the items, which
/// can be a thousand times longer than the other fields.
[[nodiscard]] std::string to_log_line(std::string_view server, std::string_view line);

/// The live page for all servers of a stream: it shows findings, a table of servers, and links to
/// the pages of single servers.
class FleetPage final : public pipeline::RecordPageData {
  public:
    struct Stream {
        std::string name;
        ServerPageUrls pages;
    };

    /// `mod` must outlive the page.
    FleetPage(PageOptions options, Stream stream, const wire::ModDescription& mod);

    ~FleetPage() override { admin_.stop(); }

    void start() { start_page(admin_, options_, "page of all servers", false); }

    /// Adds a record line to the page. This function, flush_to_page() and set_delay_reason() must
    /// be called by a single thread. They never wait for viewers.
    void add_record_line(const RecordSender& from, std::string_view line);
    /// Passes the added lines to the page's log, or keeps them if the page is not ready.
    void flush_to_page();
    /// Sets the text that tells viewers why no records arrive; empty if records arrive.
    void set_delay_reason(std::string reason);

  private:
    [[nodiscard]] web::PageFeed* page_feed() override { return &feed_; }

    [[nodiscard]] web::RunState state() const override { return state_of_server({}); }

    /// `server`: the server whose sessions are included; empty: the sessions of all servers.
    [[nodiscard]] web::RunState state_of_server(const std::string& server) const override;
    void check_readiness(std::function<void(web::Health)> done) override;
    [[nodiscard]] tl::expected<void, std::string> set_impairment(const std::string& text) override;

    Stream stream_;
    PageOptions options_;
    std::int64_t started_ms_;
    mutable std::mutex mutex_; ///< guards overview_ and delay_reason_
    FleetOverview overview_;
    std::string delay_reason_ = "not reached yet";
    web::ViewerBatch batch_; ///< used only by the thread that calls add_record_line()
    web::PageFeed feed_{1};
    web::AdminServer admin_; ///< last member, because its thread uses the others
};

} // namespace tw::process
