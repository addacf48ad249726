#include "proxy/cli/reload.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

namespace tw::cli {

namespace {

/// What a flag changes while the run goes on.
struct LiveFlag {
    std::string_view name;
    void (*apply)(const ProxyFlags& flags, run::Reload& reload);
};

constexpr std::array kLiveFlags{
    LiveFlag{"impair",
             [](const ProxyFlags& flags, run::Reload& reload) {
                 reload.impairment = flags.relay_options().impairment;
             }},
    LiveFlag{"log-level", [](const ProxyFlags& flags,
                             run::Reload& reload) { reload.log_level = flags.log_level; }},
};

} // namespace

Reloading::Reloading(Invocation invocation, const ProxyFlags& flags, const Settings& settings)
    : invocation_{std::move(invocation)}, output_{flags.records.output},
      summary_{flags.records.summary}, values_{settings.values()} {}

run::Reload Reloading::operator()() {
    run::Reload reload;
    reopen(reload);
    try {
        reread(reload);
    } catch (const std::exception& error) { // UsageError, and what CLI11 throws
        spdlog::error("the configuration is left as it was: {}", error.what());
    }
    return reload;
}

void Reloading::reread(run::Reload& reload) {
    CLI::App app;
    CLI::App* const command = app.add_subcommand("proxy");
    ProxyFlags flags;
    Settings settings{*command};
    flags.add_to(*command);
    const auto& given = invocation_.arguments;
    app.parse(std::vector<std::string>{given.rbegin(), given.rend() - 1});
    settings.complete();
    flags.check();
    if (flags.http.on()) {
        reload.token = flags.http.token(flags.relay.state_folder());
    }
    std::vector<std::string> waiting;
    for (const auto& [name, value] : settings.values()) {
        if (value == values_[name]) {
            continue;
        }
        const auto live = std::find_if(kLiveFlags.begin(), kLiveFlags.end(),
                                       [&](const LiveFlag& each) { return each.name == name; });
        if (live == kLiveFlags.end()) {
            waiting.push_back(name);
            continue;
        }
        live->apply(flags, reload);
        values_[name] = value;
        spdlog::info("{} changed", name);
    }
    if (!waiting.empty()) {
        spdlog::warn("changed, but only after a restart: {}", fmt::join(waiting, ", "));
    }
    spdlog::info("the configuration was read again");
}

void Reloading::reopen(run::Reload& reload) const {
    for (const auto& [word, path] :
         {std::pair{run::Word::records, output_}, std::pair{run::Word::summary, summary_}}) {
        if (path.empty() || path == "-") {
            continue;
        }
        relay::UniqueFd file{sink::FileOutput::open_again(path)};
        if (file.valid()) {
            reload.files.emplace_back(word, std::move(file));
        } else {
            spdlog::error("{} cannot be opened again, and stays as it is: {}", path,
                          std::generic_category().message(errno));
        }
    }
}

} // namespace tw::cli
