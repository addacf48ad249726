#pragma once

#include "proxy/cli/artifact_flags.h"
#include "proxy/cli/flight_flags.h"
#include "proxy/cli/http_flags.h"
#include "proxy/cli/record_flags.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/cli/relay_flags.h"
#include "proxy/inspect/memory_budget.h"
#include "proxy/relay/options.h"

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags of `proxy`.
struct ProxyFlags {
    std::string server;
    std::vector<std::string> listen{"127.0.0.1:8303"};
    RecordFlags records;
    ArtifactFlags artifacts;
    RecordingFlags recording;
    FlightFlags flight;
    RelayFlags relay;
    HttpFlags http;
    double idle_timeout = 60; ///< seconds
    std::size_t max_sessions = 1024;
    unsigned threads = 1;
    std::size_t ring_mib = 16;
    std::size_t memory_mib = inspect::MemoryBudget::kDefaultBytes >> 20U;
    std::size_t observer_memory_mib = 8192;
    double start_timeout = 0; ///< seconds to try again for what may come yet
    double duration = 0;      ///< seconds; 0: until a signal comes
    bool stats = false;
    bool busy_poll = false;
    bool takeover = false;
    bool background = false;
    bool no_inspect = false;
    bool quiet = false;
    std::string log_level = "info";

    void add_to(CLI::App& command);
    /// Reads all that is in them, for whoever mistyped it. Errors: UsageError.
    void check() const;
    /// What the relay needs to know of them. Errors: UsageError.
    [[nodiscard]] relay::Options relay_options() const;
};

} // namespace tw::cli
