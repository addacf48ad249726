#pragma once

#include "proxy/capture/capture_sessions.h"

#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags of the commands that read captures.
struct CaptureFlags {
    std::vector<std::string> paths;
    std::string server; ///< empty: servers are recognised

    void add_to(CLI::App& command);
    /// Whose traffic counts. Errors: UsageError.
    [[nodiscard]] capture::ServerGuess servers() const;
};

} // namespace tw::cli
