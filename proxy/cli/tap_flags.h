#pragma once

#include "proxy/capture/capture_sessions.h"
#include "proxy/cli/run_flags.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tw::cli {

/// The flags of `tap`.
struct TapFlags final : RunFlags {
    std::string interface;
    std::vector<std::string> servers; ///< empty: servers are recognised
    std::size_t buffer_mib = 16;
    std::string state;

    void add_to(CLI::App& command) override;
    void check(const Settings& settings) const override;
    [[nodiscard]] std::filesystem::path state_folder() const override;

    [[nodiscard]] std::string server_name() const override { return interface; }

    [[nodiscard]] bool sees_all() const override { return false; }

    /// Whose traffic counts. Errors: UsageError.
    [[nodiscard]] capture::ServerGuess guess() const;
    /// Their ports. Errors: UsageError.
    [[nodiscard]] std::vector<std::uint16_t> ports() const;
    /// "eth0, servers :8303, :8304"
    [[nodiscard]] std::string shown() const;
};

} // namespace tw::cli
