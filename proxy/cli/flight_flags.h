#pragma once

#include "proxy/sink/flight_recorder.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags of `proxy` about the flight recorder.
struct FlightFlags {
    std::vector<std::string> what; ///< time and size, folder; empty: there is none
    std::vector<std::string> triggers;
    bool whole = false;

    void add_to(CLI::App& command);

    [[nodiscard]] bool on() const { return !what.empty(); }

    /// Where it writes. Errors: UsageError for what is no folder that may be written to.
    [[nodiscard]] std::filesystem::path folder() const;
    /// Errors: UsageError, also where it would hold what must not be shown.
    [[nodiscard]] std::optional<sink::FlightOptions> options(bool show_secrets) const;
    /// Reads all that is in them. Errors: UsageError, also where it does not fit into the memory.
    void check(bool show_secrets, std::size_t memory_mib) const;
};

} // namespace tw::cli
