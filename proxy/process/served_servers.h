#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/process/followed_server.h"
#include "proxy/process/handover.h"

#include <functional>
#include <string>
#include <vector>

namespace tw::process {

/// Printed after a listen address that other machines cannot reach.
inline constexpr const char* kThisMachineOnly = " (this machine only)";

/// The servers that a run forwards to: adds, moves and removes them. Also writes their names and
/// addresses into the shared block, where the observer reads them.
class ServedServers {
  public:
    struct Parts {
        relay::Relay* relay;
        channel::SharedBlock* block;
        /// Returns the sockets and state that a server starts with.
        std::function<HandoverTaker::Begun(const ServedServer& served, relay::ServerIndex number)>
            begin;
    };

    /// `servers`: the first one is the relay's own server. Errors: those of Relay::add_server and
    /// of `begin`.
    ServedServers(Parts parts, std::vector<ServedServer> servers);

    /// Logs from where to where datagrams are forwarded, and which servers on this machine do not
    /// listen yet. `note`: appended if there is only one such line.
    void report(const std::string& note) const;

    /// Starts following host names, once the relay forwards.
    void begin_following();

    /// Adds and removes servers so that exactly `wanted` are served. Servers that stay are not
    /// interrupted. Logs the changes that fail.
    void serve(const std::vector<ServedServer>& wanted);

    /// Called when a server has moved to another address.
    using Moved = std::function<void(relay::ServerIndex index, const base::Endpoint& to)>;

    /// Call it once a second. `report_silence`: whether to log servers that do not answer; only
    /// without an observer, which would log them, too.
    void on_second(bool report_silence, const Moved& moved);

    /// The servers in the form that a takeover needs.
    [[nodiscard]] std::vector<HandoverGiver::Served> handover_list() const;

  private:
    void report(relay::ServerIndex index) const;
    [[nodiscard]] std::vector<std::string> routes(relay::ServerIndex index) const;
    void remove_others(const std::vector<ServedServer>& wanted);
    void add_resolved();
    void add_later(const ServedServer& server, const relay::ServerOptions& where);
    [[nodiscard]] relay::ServerIndex add(const ServedServer& added);
    void set_name(relay::ServerIndex index, const std::string& name) const;
    void share_addresses(relay::ServerIndex index) const;

    Parts parts_;
    std::vector<ServedServer> first_; ///< the initial servers, until begin_following()
    std::vector<FollowedServer> servers_;
    PendingServers pending_{PendingServers::system_lookup};
};

} // namespace tw::process
