#pragma once

#include "proxy/relay/relay.h"
#include "proxy/run/admission_report.h"
#include "proxy/run/greeting.h"
#include "proxy/run/handover_giver.h"
#include "proxy/run/handover_taker.h"
#include "proxy/run/observer_keeper.h"
#include "proxy/run/resync.h"
#include "proxy/run/server_name.h"
#include "proxy/run/server_report.h"
#include "proxy/run/server_watch.h"
#include "proxy/run/shared_block.h"
#include "proxy/run/signals.h"
#include "proxy/run/terminal.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::run {

/// When a run ends by itself.
struct TimeLimit {
    std::chrono::duration<double> after{};
    std::string reason; ///< what the log says then
};

/// What changes while a run goes on.
struct Reload {
    std::optional<relay::Impairment> impairment{};
    std::optional<std::string> log_level{}; ///< as spdlog names it
    std::optional<PageToken> token{};
    /// Word::records and Word::summary, and what to go on in.
    std::vector<std::pair<Word, relay::UniqueFd>> files{};
};

/// What a run of the relay is to do.
struct RelayRunOptions {
    relay::Options relay;       ///< `prove` is filled in
    bool admission = true;      ///< false: everyone gets a place at once
    bool inspected = true;      ///< false: there are no rings
    std::size_t ring_bytes = 0; ///< copies that may wait, for each thread
    /// See ObserverKeeper; none: there is no observer.
    std::function<std::vector<std::string>(std::uint32_t number, bool waits)> observer{};
    Greeting greeting{}; ///< what each observer is told first
    std::optional<TimeLimit> time_limit{};
    std::function<Reload()> reload{}; ///< on SIGHUP; none: there is nothing to change
    /// Opens the file of records again, for an observer that finds it gone; invalid, with errno: no.
    std::function<relay::UniqueFd()> open_records{};
    Terminal terminal{};
    /// Where others ask to take over; empty: nobody can.
    std::filesystem::path takeover_file{};
    /// Of whom it takes over; null: nobody. Has to outlive the run.
    HandoverTaker* taker = nullptr;
    /// Called once it forwards.
    std::function<void()> started{};
};

/// What came of a run.
struct RelayRunResult {
    std::optional<Ending> observer{};    ///< how the last one ended; nothing: there was none
    std::uint32_t observer_failures = 0; ///< observers that ended before their time
};

/// The relay's process of a live run: forwards, keeps an observer, obeys signals.
///
/// SIGINT and SIGTERM end it; SIGUSR1 asks for the totals so far; SIGUSR2 for what the flight recorder keeps; SIGHUP reads the configuration
/// and opens the files again, or ends it where its terminal is gone.
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
    [[nodiscard]] RelayRunResult run();

  private:
    void await_end();
    void on_signal(int signal);
    void reload();
    void change_impairment(const relay::Impairment& impairment);
    void every_second(const boost::system::error_code& error);
    void check_sessions();
    void follow_server();
    void impair(const std::string& settings);
    void open_records();
    void stop(std::string_view why);
    void open_takeover_door();
    void await_end_of_other();
    void begin_observing();
    /// "game.test:8303"; empty where the server goes by an address.
    [[nodiscard]] std::string server_name() const;
    void begin_forwarding();
    [[nodiscard]] RelayRunResult finish();

    RelayRunOptions options_;
    SharedRun shared_;
    std::vector<relay::Ring> rings_;
    std::optional<relay::Relay> relay_;
    boost::asio::io_context io_{1};
    std::optional<ObserverKeeper> keeper_;
    std::optional<HandoverGiver> giver_;
    boost::asio::posix::stream_descriptor other_{
        io_}; ///< the relay before this one, until it has ended
    boost::asio::steady_timer second_timer_{io_};
    boost::asio::steady_timer end_timer_{io_};
    std::optional<Signals> signals_; ///< last: where this cannot start, they end the process
    std::chrono::steady_clock::time_point started_;
    /// What is due at the same moment comes after all with no error, and must not wait again.
    bool stopping_ = false;
    std::uint64_t failed_sessions_reported_ = 0;
    int records_error_reported_ = 0;
    ResyncGrants resyncs_;
    AdmissionReport admission_report_;
    ServerReport server_report_;            ///< where there is no observer to say it
    std::optional<ServerName> server_name_; ///< nothing: it is an address
    ServerWatch server_watch_;
};

} // namespace tw::run
