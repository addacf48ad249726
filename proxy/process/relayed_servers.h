#pragma once

#include "proxy/channel/shared_run_memory.h"
#include "proxy/process/server_names.h"
#include "proxy/process/takeover.h"

#include <string>
#include <vector>

namespace tw::process {

/// A text for the log after a listening address that other machines cannot reach.
inline constexpr const char* kThisMachineOnly = " (this machine only)";

/// Returns the data with which a server starts: with the listening sockets of the running relay if
/// that has the server and is taken over. `requester`: null without a takeover. `number`: the
/// server's number in this relay.
[[nodiscard]] TakeoverRequester::PreparedServer prepare_server(TakeoverRequester* requester,
                                                               const ConfiguredServer& served,
                                                               relay::ServerIndex number);

/// The servers to which a run forwards. Adds servers, changes their addresses and removes them.
/// Writes their names and addresses into the shared memory, where the observer reads them.
class RelayedServers {
  public:
    /// The arguments must outlive the object. `requester`: null without a takeover. The relay was
    /// constructed with the first of `servers`. Errors: the errors of Relay::add_server and of
    /// prepare_server().
    RelayedServers(relay::Relay& relay, channel::SharedProcessData& process_data,
                   TakeoverRequester* requester, const std::vector<ConfiguredServer>& servers);

    /// Logs the listening addresses and the server's address for each server, and which servers on
    /// this machine do not listen yet. `note`: a further text to log; may be empty.
    void log_routes(const std::string& note) const;

    /// Adds and removes servers so that the relay forwards to exactly the servers in `wanted`. Does
    /// not interrupt servers that stay. Logs changes that fail.
    void set_servers(const std::vector<ConfiguredServer>& wanted);

    /// Takes over new addresses of the servers' names, and checks whether servers answer. Must be
    /// called once a second. `report_silence`: log servers that do not answer. With an observer it
    /// must be false, because the observer logs them.
    void on_second(bool report_silence);

    /// Returns the servers in the form that TakeoverResponder needs.
    [[nodiscard]] std::vector<TakeoverServer> servers_for_takeover() const;

  private:
    [[nodiscard]] std::vector<std::string> route_lines(relay::ServerIndex index) const;
    void remove_unwanted_servers(const std::vector<ConfiguredServer>& wanted);
    void add_resolved_servers();
    void add_when_resolved(const ConfiguredServer& server, const relay::ServerOptions& where);
    [[nodiscard]] relay::ServerIndex add_server(const ConfiguredServer& added);
    void set_name(relay::ServerIndex index, const std::string& name) const;
    void write_addresses(relay::ServerIndex index) const;

    relay::Relay* relay_;
    channel::SharedProcessData* process_data_;
    TakeoverRequester* requester_;
    std::vector<ServerAddressUpdater> servers_;
    UnresolvedServers pending_{UnresolvedServers::system_lookup};
};

} // namespace tw::process
