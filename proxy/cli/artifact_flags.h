#pragma once

#include "proxy/cli/record_flags.h"
#include "proxy/sink/demo_sink.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags that `proxy` and `decode` share: what is written for other programs.
struct ArtifactFlags {
    std::string demo; ///< folder; empty: none
    int demo_version = 6;
    std::string capture;        ///< file or folder; empty: none
    std::string capture_filter; ///< empty: all that it may hold

    void add_to(CLI::App& command);

    [[nodiscard]] bool wants_demos() const { return !demo.empty(); }

    /// Errors: UsageError for what is no folder that may be written to.
    [[nodiscard]] std::optional<sink::DemoOptions> demos(const RecordFlags& records) const;
    /// Errors: UsageError where the capture would hold what must not be shown.
    void check_capture(bool show_secrets) const;
    /// The folders that files are made in.
    [[nodiscard]] std::vector<std::filesystem::path> folders() const;
};

} // namespace tw::cli
