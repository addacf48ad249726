#pragma once

#include "proxy/process/admin_run.h"
#include "proxy/record/stats.h"
#include "proxy/web/admin.h"
#include "proxy/web/feed.h"
#include "proxy/web/state.h"
#include "proxy/wire/message_set.h"

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
struct LineHead;
} // namespace tw::filter

namespace tw::process {

/// Where servers have pages of their own.
struct ServerPages {
    std::string pattern{}; ///< with {server} for the name of one; empty: none
    std::map<std::string, std::string, std::less<>> own{}; ///< by its name; they go before

    /// Empty: nobody knows.
    [[nodiscard]] std::string of(std::string_view server) const;
};

/// Whose record it is.
struct Sender {
    std::string_view server; ///< its name on the bus
    std::string_view run{};  ///< of its twscope; empty: nobody knows
};

/// What the records of many servers, as lines, say of them: who plays where, what was found.
class FleetBoard {
  public:
    /// Servers beyond this are only counted.
    static constexpr std::size_t kMaxServers = 4096;
    /// So are open sessions of one server.
    static constexpr std::size_t kMaxSessions = 1024;
    /// Runs of one server that are known: more than follow each other while records of the first are under way.
    static constexpr std::size_t kMaxRuns = 8;

    /// What is no record says nothing. `now_ms`: since 1970, by the clock of who collects.
    void add(const Sender& from, std::string_view line, std::int64_t now_ms);

    /// Servers, findings, how many records there were, and sessions: those of one server, or as many of all
    /// as a table has room for; `chosen` empty: of all.
    void show(web::State& state, const ServerPages& pages, std::string_view chosen = {}) const;

  private:
    struct Session {
        web::SessionView view{};
    };

    /// A run, and the number of a session in it: another one counts from 1 again.
    using SessionKey = std::pair<std::string, std::uint32_t>;

    struct Server {
        std::map<SessionKey, Session> sessions{}; ///< those that are open
        std::deque<std::string> runs{};           ///< the latest ones
        std::uint64_t records = 0;
        /// Time of the one that came last, since 1970, and no later than now: by one wrong clock a server would never
        /// look silent again.
        std::int64_t last_ms = 0;
        std::uint64_t findings = 0;
        bool silent = false; ///< it answers none of its sessions
        web::SilenceState silence{};
    };

    using Object = boost::json::object;

    static void show(const std::string& name, const Server& server, web::State& state);
    static void show_sessions(std::vector<const web::SessionView*> open, std::size_t most,
                              web::View& view);
    [[nodiscard]] Server* server_of(std::string_view name, const filter::LineHead& head);
    static void see_run(Server& server, std::string_view run);
    void see(const Sender& from, Server& server, const filter::LineHead& head,
             std::string_view line);
    static void see_session(const Sender& from, Server& server, const filter::LineHead& head,
                            const Object& record);
    void see_finding(const Sender& from, Server& server, const filter::LineHead& head,
                     const Object& record);
    static void see_silence(Server& server, const filter::LineHead& head, const Object& record);
    [[nodiscard]] static Session* find_session(Server& server, const Sender& from,
                                               const filter::LineHead& head);

    std::map<std::string, Server, std::less<>> servers_;
    record::FindingCounts findings_{};
    std::deque<web::FindingLine> recent_; ///< warnings and errors
    std::uint64_t records_ = 0;
    std::uint64_t left_out_ = 0; ///< records of servers that are too many
};

/// The line as the page's log has it: with its server's name, and without items, which are a thousand times
/// as long as the rest.
[[nodiscard]] std::string log_line(std::string_view server, std::string_view line);

/// The page over all servers of a stream: what their records say, a table of them, and the way to the page
/// that each has of its own.
class FleetPage {
  public:
    struct Stream {
        std::string name;
        ServerPages pages;
    };

    /// `mod` has to outlive it.
    FleetPage(PageOptions options, Stream stream, const wire::ModDescription& mod);

    ~FleetPage() { admin_.stop(); }

    FleetPage(const FleetPage&) = delete;
    FleetPage& operator=(const FleetPage&) = delete;
    FleetPage(FleetPage&&) = delete;
    FleetPage& operator=(FleetPage&&) = delete;

    void start();

    /// All but start() by one thread, which never waits for a viewer.
    void add(const Sender& from, std::string_view line);
    /// Gives the page's log what there is; when the page is not ready, the next call does.
    void hand_over();
    /// Why nothing comes; empty: it does again.
    void set_trouble(std::string trouble);

  private:
    void tell_address(const web::HttpAddress& where) const;
    /// `server`: whose sessions; empty: those of all.
    [[nodiscard]] web::State state(std::string_view server = {}) const;
    [[nodiscard]] web::Health ready() const;
    [[nodiscard]] web::Sources sources();

    Stream stream_;
    PageToken token_;
    bool log_is_private_;
    bool open_reading_;
    std::string host_;
    const wire::ModDescription* mod_;
    std::int64_t started_ms_;
    mutable std::mutex mutex_; ///< of what the page's thread reads
    FleetBoard board_;
    std::string trouble_ = "not reached yet";
    web::Batch batch_; ///< of who adds
    web::Feed feed_{1};
    web::Admin admin_; ///< last: it calls the rest
};

} // namespace tw::process
