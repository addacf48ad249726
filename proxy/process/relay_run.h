#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/pipeline/resync.h"
#include "proxy/process/handover_giver.h"
#include "proxy/process/handover_taker.h"
#include "proxy/process/served_servers.h"
#include "proxy/process/supervisor.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/relay.h"
#include "proxy/relay/stranger_filter.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

namespace tw::process {

/// What tells the relay, which knows nothing of the game, how far a client has come with the server:
/// wire::judge.
[[nodiscard]] relay::Verdict prove_address(relay::ProofMemory& memory, relay::Direction direction,
                                           std::span<const std::byte> datagram);

/// What lets the relay repeat a server's information: proxy/wire/connless.h.
[[nodiscard]] relay::Repeating repeating_info();

/// Says what was turned away or answered at the door, once a second at most.
class AdmissionReport {
  public:
    /// To be called once a second: what to log, when there is anything.
    [[nodiscard]] std::optional<std::string> check(const relay::Counters& counters);

  private:
    relay::AdmissionTotals<std::uint64_t> told_{};
    std::uint64_t refused_told_ = 0;
    std::uint64_t repeated_told_ = 0;
};

/// What a run of the relay is to do.
struct RelayRunOptions {
    relay::Options relay; ///< `prove` is filled in; the server, where there are `servers`
    /// Each with a name of its own. None: the one that `relay` names, without a name.
    std::vector<ServedServer> servers{};
    bool admission = true;      ///< false: everyone gets a place at once
    bool info_cache = true;     ///< server info is repeated in a flood of requests
    bool inspected = true;      ///< false: there are no rings
    std::size_t ring_bytes = 0; ///< copies that may wait, for each thread
    SupervisorOptions supervision{};
    /// Where others ask to take over; empty: nobody can.
    std::filesystem::path takeover_file{};
    /// Of whom it takes over; null: nobody. Has to outlive the run.
    HandoverTaker* taker = nullptr;
    /// Called once it forwards.
    std::function<void()> started{};
};

/// The relay's process of a live run: forwards, and is supervised (see Supervisor).
class RelayRun {
  public:
    /// Binds everything, or goes on with what another one bound; clients' datagrams wait until run().
    /// Errors: relay::StartError, relay::HandoverError, std::system_error.
    explicit RelayRun(RelayRunOptions options);

    /// The mode in use: never `automatic`.
    [[nodiscard]] relay::ClientAddress client_address() const { return relay_->client_address(); }

    /// Starts the observer. Returns how it ended where it could not begin; it has said why.
    [[nodiscard]] std::optional<Ending> open();

    /// Where another one forwards until now: takes over from it and forwards. When that fails, the
    /// other one goes on. Errors: relay::HandoverError.
    void take_over();

    /// Forwards until a signal comes or the time is over, and the observer has written what is left.
    /// From the constructor on signals wait for it, or for the end of the process. Once.
    [[nodiscard]] LiveRunResult run();

  private:
    void change_impairment(const relay::Impairment& impairment);
    void on_second();
    void serve(const std::vector<ServedServer>& wanted);
    void serve_postponed();
    void check_sessions();
    [[nodiscard]] HandoverTaker::Begun begin(const ServedServer& served,
                                             relay::ServerIndex number) const;
    void open_takeover_door();
    void await_end_of_other();
    void begin_observing();
    void begin_forwarding();
    [[nodiscard]] LiveRunResult finish();

    RelayRunOptions options_;
    channel::SharedRun shared_;
    std::vector<relay::Ring> rings_;
    std::optional<relay::Relay> relay_;
    std::optional<ServedServers> servers_;
    std::optional<Supervisor> supervisor_; ///< before all that waits on its io_context
    std::optional<HandoverGiver> giver_;
    std::optional<std::vector<ServedServer>>
        postponed_; ///< to be served, when the relay turns again
    /// The relay before this one, until it has ended.
    std::optional<boost::asio::posix::stream_descriptor> other_;
    std::chrono::steady_clock::time_point started_;
    std::uint64_t failed_sessions_reported_ = 0;
    pipeline::ResyncGrants resyncs_;
    AdmissionReport admission_report_;
};

} // namespace tw::process
