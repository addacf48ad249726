#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/process/followed_server.h"
#include "proxy/process/handover_giver.h"
#include "proxy/process/handover_taker.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::process {

/// The servers that a run forwards to, while they come, move and go. What the observer knows of them
/// stands in the shared block.
class ServedServers {
  public:
    struct Parts {
        relay::Relay* relay;
        channel::SharedBlock* block;
        /// See HandoverTaker::begin.
        std::function<HandoverTaker::Begun(const ServedServer& served, relay::ServerIndex number)>
            begin;
    };

    /// The first of `servers` is the relay's own. Errors: those of Relay::add_server and of `begin`.
    ServedServers(Parts parts, std::vector<ServedServer> servers);

    /// Says in the log where they listen.
    void report() const;

    /// The relay forwards from now on: goes with each where its name leads.
    void begin_following();

    /// They are to be these: adds and takes out, and leaves others alone. What cannot be is said in the
    /// log.
    void serve(const std::vector<ServedServer>& wanted);

    /// One is at another address now.
    using Moved = std::function<void(relay::ServerIndex index, const base::Endpoint& to)>;

    /// To be called once a second. `report_silence`: nobody else says whether they answer.
    void on_second(bool report_silence, const Moved& moved);

    /// As one that takes over gets them.
    [[nodiscard]] std::vector<HandoverGiver::Served> now() const;

  private:
    void report(relay::ServerIndex index) const;
    void take_out(const std::vector<ServedServer>& wanted);
    void add_arrived();
    void add_later(const ServedServer& server, const relay::ServerOptions& where);
    [[nodiscard]] relay::ServerIndex add(const ServedServer& added);
    void name(relay::ServerIndex index, const std::string& name) const;
    void note(relay::ServerIndex index) const;

    Parts parts_;
    std::vector<ServedServer> first_; ///< until they are followed
    std::vector<FollowedServer> servers_;
    ServerArrivals arrivals_{ServerArrivals::system_lookup};
};

} // namespace tw::process
