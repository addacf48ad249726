#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/process/followed_server.h"
#include "proxy/process/handover.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::process {

/// Follows a listen address that other machines cannot reach.
inline constexpr const char* kThisMachineOnly = " (this machine only)";

/// The servers that a run forwards to, as they are added, moved and removed. Their descriptions for
/// the observer are in the shared block.
class ServedServers {
  public:
    struct Parts {
        relay::Relay* relay;
        channel::SharedBlock* block;
        /// See HandoverTaker::begin.
        std::function<HandoverTaker::Begun(const ServedServer& served, relay::ServerIndex number)>
            begin;
    };

    /// `servers`: the first one is the relay's own server. Errors: those of Relay::add_server and
    /// of `begin`.
    ServedServers(Parts parts, std::vector<ServedServer> servers);

    /// Logs what is forwarded where, and which servers on this machine cannot be there yet. `note`:
    /// follows on the same line if there is only one.
    void report(const std::string& note) const;

    /// Starts following host names, once the relay forwards.
    void begin_following();

    /// Adds and removes servers so that exactly these are served; the others are not touched. Logs
    /// what is impossible.
    void serve(const std::vector<ServedServer>& wanted);

    /// Called when a server has moved to another address.
    using Moved = std::function<void(relay::ServerIndex index, const base::Endpoint& to)>;

    /// Call it once a second. `report_silence`: whether to log servers that do not answer, without
    /// an observer.
    void on_second(bool report_silence, const Moved& moved);

    /// The servers in the form that a takeover needs.
    [[nodiscard]] std::vector<HandoverGiver::Served> now() const;

  private:
    void report(relay::ServerIndex index) const;
    [[nodiscard]] std::vector<std::string> routes(relay::ServerIndex index) const;
    void take_out(const std::vector<ServedServer>& wanted);
    void add_arrived();
    void add_later(const ServedServer& server, const relay::ServerOptions& where);
    [[nodiscard]] relay::ServerIndex add(const ServedServer& added);
    void name(relay::ServerIndex index, const std::string& name) const;
    void note(relay::ServerIndex index) const;

    Parts parts_;
    std::vector<ServedServer> first_; ///< the initial servers, until begin_following()
    std::vector<FollowedServer> servers_;
    ServerArrivals arrivals_{ServerArrivals::system_lookup};
};

} // namespace tw::process
