#pragma once

#include "proxy/cli/relay_flags.h"
#include "proxy/cli/run_flags.h"
#include "proxy/relay/options.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace tw::cli {

/// The flags of `proxy`.
struct ProxyFlags final : RunFlags {
    std::vector<std::string> server; ///< one, or several with names
    std::vector<std::string> listen{"127.0.0.1:8303"};
    RelayFlags relay;
    unsigned threads = 1;
    double start_timeout = 0; ///< seconds to try again for what may come yet
    bool busy_poll = false;
    bool takeover = false;

    void add_to(CLI::App& command) override;
    void check(const Settings& settings) const override;

    /// What belongs to no server of several goes by "fleet".
    [[nodiscard]] std::string server_name() const override;

    [[nodiscard]] std::vector<run::ServedServer> servers() const override;

    void prepare_servers(std::size_t count) const override;

    [[nodiscard]] std::filesystem::path state_folder() const override {
        return relay.state_folder();
    }

    [[nodiscard]] relay::Impairment impairment() const override {
        return relay_options().impairment;
    }

    [[nodiscard]] bool asks_again() const override { return relay.resync; }

    /// What the relay needs to know of them. Errors: UsageError.
    [[nodiscard]] relay::Options relay_options() const;
};

} // namespace tw::cli
