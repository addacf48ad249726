#pragma once

#include "proxy/relay/relay.h"
#include "proxy/run/admission_report.h"
#include "proxy/run/handover_giver.h"
#include "proxy/run/handover_taker.h"
#include "proxy/run/resync.h"
#include "proxy/run/served_servers.h"
#include "proxy/run/shared_block.h"
#include "proxy/run/supervisor.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

namespace tw::run {

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
    SharedRun shared_;
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
    ResyncGrants resyncs_;
    AdmissionReport admission_report_;
};

} // namespace tw::run
