#pragma once

#include "proxy/channel/shared_run_memory.h"
#include "proxy/process/server_names.h"
#include "proxy/process/takeover.h"

#include <string>
#include <vector>

namespace tw::process {

/// A note in the log about a listening address that other machines cannot reach.
inline constexpr const char* kThisMachineOnly = " (this machine only)";

/// Returns the options and listening sockets with which a server starts. In a takeover, the sockets
/// come from the running relay if it has the server. `requester`: null without a takeover.
/// `number`: the server's number in this relay.
[[nodiscard]] TakeoverRequester::PreparedServer prepare_server(TakeoverRequester* requester,
                                                               const ConfiguredServer& served,
                                                               relay::ServerIndex number);

/// The servers to which a run forwards. Adds servers, changes their addresses and removes them.
/// Writes their names and addresses into the shared memory, where the observer reads them.
class RelayedServers {
  public:
    /// The arguments must outlive the object. `requester`: null without a takeover. Precondition:
    /// `relay` was constructed with the first of `servers`. Errors: the errors of Relay::add_server
    /// and of prepare_server().
    RelayedServers(relay::Relay& relay, channel::SharedProcessData& process_data,
                   TakeoverRequester* requester, const std::vector<ConfiguredServer>& servers);

    /// Logs each server's own address and its listening addresses. Warns about servers on this
    /// machine that do not listen yet. `note`: a further text to log; may be empty.
    void log_routes(const std::string& note) const;

    /// Adds and removes servers so that the relay forwards to exactly the servers in `wanted`. Does
    /// not interrupt servers that stay. Logs changes that fail.
    void set_servers(const std::vector<ConfiguredServer>& wanted);

    /// Applies address changes of the servers' host names, and checks whether servers answer. Must
    /// be called once a second. `report_silence`: servers that do not answer are logged; must be
    /// false if there is an observer, which logs them.
    void on_second(bool report_silence);

    /// Returns the servers in the form that TakeoverResponder needs.
    [[nodiscard]] std::vector<TakeoverServer> servers_for_takeover() const;

  private:
    [[nodiscard]] std::vector<std::string> route_lines(relay::ServerIndex index) const;
    void remove_unwanted_servers(const std::vector<ConfiguredServer>& wanted);
    void add_resolved_servers();
    void try_add_server(const ConfiguredServer& server, const relay::ServerOptions& where);
    [[nodiscard]] relay::ServerIndex add_server(const ConfiguredServer& added);
    void set_name(relay::ServerIndex index, const std::string& name) const;
    void write_addresses(relay::ServerIndex index) const;

    relay::Relay* relay_;
    channel::SharedProcessData* process_data_;
    TakeoverRequester* requester_;
    std::vector<ServerAddressUpdater> servers_;
    UnresolvedServers pending_{UnresolvedServers::make_system_lookup};
};

} // namespace tw::process
