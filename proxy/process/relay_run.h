#pragma once

#include "proxy/channel/shared_run_memory.h"
#include "proxy/pipeline/resync.h"
#include "proxy/process/relayed_servers.h"
#include "proxy/process/supervisor.h"
#include "proxy/process/takeover.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/new_client_filter.h"
#include "proxy/relay/relay.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tw::process {

/// Determines from a datagram how far a client's handshake has progressed. Calls
/// wire::judge_datagram(). Used as relay::DatagramJudge.
[[nodiscard]] relay::DatagramVerdict judge_relayed_datagram(relay::RememberedHandshakes& memory,
                                                            relay::Direction direction,
                                                            std::span<const std::byte> datagram);

/// Returns the functions with which the relay itself answers requests for server info.
[[nodiscard]] relay::AnswerFunctions info_answer_functions();

/// Makes the log lines about rejected datagrams and about requests that the relay answered itself.
class NewClientReport {
  public:
    /// `address_limit`: the flag with which the user limits the sessions of an address.
    explicit NewClientReport(std::string address_limit)
        : address_limit_{std::move(address_limit)} {}

    static constexpr int kMinSecondsBetweenLines = 10;

    /// Must be called once a second. Returns the line to log; nullopt if the counters have not
    /// changed, or the last line was returned less than kMinSecondsBetweenLines seconds ago.
    /// `at_end`: this is the last call, which does not wait for kMinSecondsBetweenLines.
    [[nodiscard]] std::optional<std::string> next_log_line(const relay::Counters& counters,
                                                           bool at_end = false);

  private:
    std::string address_limit_;
    relay::Counters reported_;              ///< the counters when a line was last due
    int seconds_ = kMinSecondsBetweenLines; ///< seconds since the last line, capped
};

struct RelayRunOptions {
    /// RelayRun sets `judge_datagram` and `answer_functions`. It also sets `server` if `servers` is
    /// not empty.
    relay::Options relay;
    /// The servers; their names must differ. Empty: the run has one server, `relay.server`, without
    /// a name.
    std::vector<ConfiguredServer> servers{};
    bool limits_new_clients = true; ///< false: only the number of sessions is limited
    /// true: while many requests for server info arrive, the relay answers them itself.
    bool repeats_info_answers = true;
    bool is_inspected = true;   ///< false: the run has no rings and no observer
    std::size_t ring_bytes = 0; ///< size of each thread's ring in bytes
    SupervisorOptions supervision{};
    /// The path of the socket that accepts takeover requests; empty: no socket.
    std::filesystem::path takeover_file{};
    std::string address_limit{};  ///< see NewClientReport
    std::string example_client{}; ///< kExampleClient as this run's records show it
    /// The relay from which this run takes over; null: no takeover. Must outlive the run.
    TakeoverRequester* requester = nullptr;
    /// Called when the relay has started to forward.
    std::function<void()> on_forwarding{};
};

/// The main object of a relay process: forwards traffic, and is controlled by a Supervisor.
class RelayRun final : public SupervisedRun {
  public:
    /// Opens all sockets; if the options have a `requester`, takes over the running relay's
    /// sockets. Datagrams wait in the sockets until forward_until_stopped(). Errors:
    /// relay::StartError, relay::TakeoverError, std::system_error.
    explicit RelayRun(RelayRunOptions options);

    [[nodiscard]] relay::ClientAddressMode client_address_mode() const {
        return relay_->client_address_mode();
    }

    /// Starts the observer. Returns nullopt on success. Otherwise returns how the observer ended;
    /// the observer has reported the reason.
    [[nodiscard]] std::optional<ProcessExit> start_observer() {
        return supervisor_->start_observer();
    }

    /// See RelayedServers::log_routes().
    void log_routes(const std::string& note) const { servers_->log_routes(note); }

    /// Takes over from the running relay and starts forwarding. If that fails, the running relay
    /// continues. Precondition: the options have a `requester`. Errors: relay::TakeoverError.
    void take_over();

    /// Forwards until a signal or the time limit, then waits until the observer has finished.
    /// Signals are blocked from the constructor until this call. Must be called once.
    [[nodiscard]] LiveRunResult forward_until_stopped();

  private:
    void on_second() override;
    void set_impairment(const relay::Impairment& impairment) override;

    void set_servers(const std::vector<ConfiguredServer>& servers) override {
        servers_->set_servers(servers);
    }

    void request_full_snapshot(const std::string& session) override;

    void log_rejected_datagrams(bool at_end = false);
    void open_takeover_socket();
    void start_observing();
    void begin_forwarding();
    [[nodiscard]] LiveRunResult finish_run();

    RelayRunOptions options_;
    channel::SharedRunMemory shared_;
    std::vector<relay::Ring> rings_;
    std::optional<relay::Relay> relay_;
    std::optional<RelayedServers> servers_;
    /// Must be declared before all members that use its io_context.
    std::optional<Supervisor> supervisor_;
    std::optional<TakeoverResponder> responder_;
    /// Watches the connection to the relay from which this run took over.
    std::optional<ReadableWatch> previous_relay_;
    /// True until the relay from which this run took over has ended.
    bool awaits_previous_relay_ = false;
    std::chrono::steady_clock::time_point started_;
    std::uint64_t failed_sessions_reported_ = 0;
    pipeline::ResyncLimiter resync_limiter_;
    NewClientReport client_report_;
};

} // namespace tw::process
