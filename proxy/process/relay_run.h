#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/pipeline/resync.h"
#include "proxy/process/handover.h"
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

/// The relay's function that checks address proofs, by wire::judge: how far a client's handshake
/// has got.
[[nodiscard]] relay::Verdict prove_address(relay::ProofMemory& memory, relay::Direction direction,
                                           std::span<const std::byte> datagram);

/// The functions by which the relay reads and repeats a server's information.
[[nodiscard]] relay::AnswerFunctions repeating_info();

/// Describes rejected and repeated datagrams for the log.
class AdmissionReport {
  public:
    /// Call it once a second. Returns the line to log; nullopt if the counts are unchanged.
    [[nodiscard]] std::optional<std::string> check(const relay::Counters& counters);

  private:
    relay::AdmissionTotals<std::uint64_t> reported_{};
    std::uint64_t refused_reported_ = 0;
    std::uint64_t repeated_reported_ = 0;
};

/// The settings of a relay run.
struct RelayRunOptions {
    relay::Options relay; ///< the run sets `prove`, and the server if `servers` is not empty
    /// Servers with distinct names. Empty: one unnamed server, as in `relay`.
    std::vector<ServedServer> servers{};
    bool admission = true;      ///< false: no limits except the number of sessions
    bool info_cache = true;     ///< whether server info is repeated while there are many requests
    bool inspected = true;      ///< false: no rings and no observer
    std::size_t ring_bytes = 0; ///< size of each thread's ring
    SupervisorOptions supervision{};
    /// The socket that accepts takeovers; empty: none.
    std::filesystem::path takeover_file{};
    /// The relay to take over from; null: none. Must outlive the run.
    HandoverTaker* taker = nullptr;
    /// Called once the relay forwards.
    std::function<void()> started{};
};

/// The relay's process of a live run, which forwards and is supervised (see Supervisor).
class RelayRun {
  public:
    /// Opens all sockets, or uses those of the relay that it takes over from. Datagrams wait until
    /// run().
    /// Errors: relay::StartError, relay::HandoverError, std::system_error.
    explicit RelayRun(RelayRunOptions options);

    /// The mode in use, never `automatic`.
    [[nodiscard]] relay::ClientAddress client_address() const { return relay_->client_address(); }

    /// Starts the observer. Returns how it ended if it could not start; it has reported why.
    [[nodiscard]] std::optional<ProcessExit> open();

    /// Logs from where to where each server's datagrams are forwarded. `note`: a text to append.
    void report(const std::string& note) const { servers_->report(note); }

    /// With a taker: takes over and starts forwarding. On failure the other relay continues.
    /// Errors: relay::HandoverError.
    void take_over();

    /// Forwards until a signal or the time limit; then waits until the observer has finished.
    /// Signals are blocked from the constructor on, until run() or the end of the process. Call it
    /// once.
    [[nodiscard]] LiveRunResult run();

  private:
    void change_impairment(const relay::Impairment& impairment);
    void on_second();
    void serve(const std::vector<ServedServer>& wanted);
    void apply_postponed_servers();
    void report_failed_sessions();
    [[nodiscard]] HandoverTaker::Begun begin_server(const ServedServer& served,
                                                    relay::ServerIndex number) const;
    void open_takeover_socket();
    void await_previous_relay();
    void start_observing();
    void begin_forwarding();
    [[nodiscard]] LiveRunResult finish();

    RelayRunOptions options_;
    channel::SharedRun shared_;
    std::vector<relay::Ring> rings_;
    std::optional<relay::Relay> relay_;
    std::optional<ServedServers> servers_;
    std::optional<Supervisor> supervisor_; ///< declared before all objects that use its io_context
    std::optional<HandoverGiver> giver_;

    /// The servers of a reload that arrived during a takeover; applied after it.
    std::optional<std::vector<ServedServer>> postponed_;
    /// The connection to the previous relay, until that relay has ended.
    std::optional<boost::asio::posix::stream_descriptor> previous_relay_;
    std::chrono::steady_clock::time_point started_;
    std::uint64_t failed_sessions_reported_ = 0;
    pipeline::ResyncLimiter resync_limiter_;
    AdmissionReport admission_report_;
};

} // namespace tw::process
