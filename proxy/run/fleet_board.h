#pragma once

#include "proxy/admin/state.h"
#include "proxy/record/stats.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

namespace tw::filter {
struct LineHead;
} // namespace tw::filter

namespace tw::run {

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
    void show(admin::State& state, const ServerPages& pages, std::string_view chosen = {}) const;

  private:
    struct Session {
        admin::SessionView view{};
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
        admin::SilenceState silence{};
    };

    using Object = boost::json::object;

    static void show(const std::string& name, const Server& server, admin::State& state);
    static void show_sessions(std::vector<const admin::SessionView*> open, std::size_t most,
                              admin::View& view);
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
    std::deque<admin::FindingLine> recent_; ///< warnings and errors
    std::uint64_t records_ = 0;
    std::uint64_t left_out_ = 0; ///< records of servers that are too many
};

/// The line as the page's log has it: with its server's name, and without items, which are a thousand times
/// as long as the rest.
[[nodiscard]] std::string log_line(std::string_view server, std::string_view line);

} // namespace tw::run
