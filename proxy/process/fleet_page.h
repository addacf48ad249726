#pragma once

#include "proxy/process/live_page.h"
#include "proxy/record/stats.h"
#include "proxy/web/admin.h"
#include "proxy/web/feed.h"
#include "proxy/web/state.h"
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

/// The addresses of the servers' own pages.
struct ServerPages {
    std::string pattern{}; ///< URL with {server} in place of the name; empty: no pages
    /// URLs by server name; these override `pattern`
    std::map<std::string, std::string, std::less<>> own{};

    /// Returns the URL of a server's page; empty if unknown.
    [[nodiscard]] std::string url_of(std::string_view server) const;
};

/// The sender of a record.
struct Sender {
    std::string_view server; ///< its name on the bus
    std::string_view run{};  ///< the id of its twscope run; empty if unknown
};

/// The state of many servers, derived from their record lines: sessions, players and findings.
class FleetBoard {
  public:
    /// The limit of servers. Records of further servers are only counted.
    static constexpr std::size_t kMaxServers = 4096;
    /// The limit of a server's open sessions in the table. Further ones are only counted.
    static constexpr std::size_t kMaxSessions = 1024;
    /// Runs remembered per server; records of an earlier run may still arrive during the next one.
    static constexpr std::size_t kMaxRuns = 8;

    /// Adds a record line. Ignores lines that are not records. `now_ms`: Unix time of the
    /// collector.
    void add(const Sender& from, std::string_view line, std::int64_t now_ms);

    /// Fills in servers, findings, the record count, and sessions. `chosen`: the server whose
    /// sessions are included; empty: those of all servers, up to web::StatusView::kMaxSessions.
    void show(web::RunState& state, const ServerPages& pages, std::string_view chosen = {}) const;

  private:
    struct Session {
        web::SessionView view{};
    };

    /// A run's id and a session number; each run numbers its sessions from 1.
    using SessionKey = std::pair<std::string, std::uint32_t>;

    struct Server {
        std::map<SessionKey, Session> sessions{}; ///< open sessions
        std::deque<std::string> runs{};           ///< the ids of the latest runs
        std::uint64_t records = 0;
        /// Unix time of the latest record, capped at the collector's time: otherwise a server with
        /// a wrong clock would never look silent again.
        std::int64_t last_ms = 0;
        std::uint64_t findings = 0;
        bool silent = false; ///< the server answers none of its sessions
        web::SilenceState silence{};
    };

    using Object = boost::json::object;

    static void show(const std::string& name, const Server& server, web::RunState& state);
    static void fill_sessions(std::vector<const web::SessionView*> open, std::size_t most,
                              web::StatusView& view);
    [[nodiscard]] Server* find_or_add_server(std::string_view name,
                                             const filter::RecordLineHead& head);
    static void note_run(Server& server, std::string_view run);
    void add_record(const Sender& from, Server& server, const filter::RecordLineHead& head,
                    std::string_view line);
    static void update_session(const Sender& from, Server& server,
                               const filter::RecordLineHead& head, const Object& record);
    void add_finding(const Sender& from, Server& server, const filter::RecordLineHead& head,
                     const Object& record);
    static void update_silence(Server& server, const filter::RecordLineHead& head,
                               const Object& record);
    [[nodiscard]] static Session* find_session(Server& server, const Sender& from,
                                               const filter::RecordLineHead& head);

    std::map<std::string, Server, std::less<>> servers_;
    record::FindingCounts findings_{};
    /// The latest findings that are warnings or errors.
    std::deque<web::FindingLine> recent_findings_;
    std::uint64_t records_ = 0;
    std::uint64_t records_left_out_ = 0; ///< records of servers beyond kMaxServers
};

/// Returns a record line as the page's log shows it: with the server's name and without items,
/// which can be a thousand times longer than the rest.
[[nodiscard]] std::string to_log_line(std::string_view server, std::string_view line);

/// The page over all servers of a stream: findings, a table of servers, and links to the servers'
/// own pages.
class FleetPage {
  public:
    struct Stream {
        std::string name;
        ServerPages pages;
    };

    /// `mod` must outlive the page.
    FleetPage(PageOptions options, Stream stream, const wire::ModDescription& mod);

    ~FleetPage() { admin_.stop(); }

    FleetPage(const FleetPage&) = delete;
    FleetPage& operator=(const FleetPage&) = delete;

    void start();

    /// All functions except start() must be called by one thread. They never wait for viewers.
    void add(const Sender& from, std::string_view line);
    /// Passes collected lines to the page's log. If the page is not ready, the next call does it.
    void flush_to_page();
    /// Sets the reason why no records arrive; empty if they arrive.
    void set_delay_reason(std::string reason);

  private:
    void log_address(const web::HttpAddress& where) const;
    /// `server`: the server whose sessions are included; empty: all.
    [[nodiscard]] web::RunState state(std::string_view server = {}) const;
    [[nodiscard]] web::Health ready() const;
    [[nodiscard]] web::PageSources sources();

    Stream stream_;
    PageToken token_;
    bool log_is_private_;
    bool reads_freely_;
    std::string host_;
    const wire::ModDescription* mod_;
    std::int64_t started_ms_;
    mutable std::mutex mutex_; ///< guards board_ and delay_reason_
    FleetBoard board_;
    std::string delay_reason_ = "not reached yet";
    web::ViewerBatch batch_; ///< used by the adding thread
    web::PageFeed feed_{1};
    web::AdminServer admin_; ///< last member, because its thread uses the others
};

} // namespace tw::process
