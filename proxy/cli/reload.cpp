#include "proxy/cli/reload.h"

#include "proxy/sink/file_output.h"

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
    void (*apply)(const RunFlags& flags, run::Reload& reload);
};

constexpr std::array kLiveFlags{
    LiveFlag{"impair", [](const RunFlags& flags,
                          run::Reload& reload) { reload.impairment = flags.impairment(); }},
    LiveFlag{"log-level", [](const RunFlags& flags,
                             run::Reload& reload) { reload.log_level = flags.log_level; }},
};

} // namespace

relay::UniqueFd open_again(const RunFlags& flags, run::Word word) {
    return word == run::Word::capture
               ? flags.recording.open_again(recorded_capture(), flags.artifacts.capture)
               : flags.recording.open_again(recorded_lines(), flags.records.output);
}

Reloading::Reloading(std::string command, Invocation invocation, MakeFlags make_flags,
                     const RunFlags& flags, const Settings& settings)
    : command_{std::move(command)}, invocation_{std::move(invocation)},
      make_flags_{std::move(make_flags)}, open_again_{[&flags](run::Word word) {
          return open_again(flags, word);
      }},
      prepare_servers_{[&flags](std::size_t count) { flags.prepare_servers(count); }},
      recorded_{{run::Word::records, flags.records.output,
                 !flags.recording.folder(recorded_lines(), flags.records.output).empty()},
                {run::Word::capture, flags.artifacts.capture,
                 !flags.recording.folder(recorded_capture(), flags.artifacts.capture).empty()}},
      summary_{flags.records.summary}, named_{!flags.servers().empty()}, values_{
                                                                             settings.values()} {}

run::Reload Reloading::operator()() {
    run::Reload reload;
    try {
        reload = reread();
    } catch (const std::exception& error) { // UsageError, and what CLI11 throws
        spdlog::error("configuration not reloaded: {}", error.what());
    }
    reopen(reload);
    return reload;
}

run::Reload Reloading::reread() {
    CLI::App app;
    CLI::App* const command = app.add_subcommand(command_);
    const std::unique_ptr<RunFlags> made = make_flags_();
    RunFlags& flags = *made;
    Settings settings{*command};
    flags.add_to(*command);
    const auto& given = invocation_.arguments;
    app.parse(std::vector<std::string>{given.rbegin(), given.rend() - 1});
    settings.complete();
    flags.check(settings);
    run::Reload reload;
    if (flags.http.on()) {
        reload.token = flags.http.token(flags.state_folder());
    }
    reload.servers = servers_of(flags);
    std::vector<std::string> waiting;
    for (const auto& [name, value] : settings.values()) {
        if (value == values_[name]) {
            continue;
        }
        const auto* const live =
            std::ranges::find(kLiveFlags, std::string_view{name}, &LiveFlag::name);
        if (live != kLiveFlags.end()) {
            live->apply(flags, reload);
        } else if (!reload.servers || (name != "server" && name != "listen")) {
            waiting.push_back(name);
            continue;
        }
        values_[name] = value;
        spdlog::info("{} changed", name);
    }
    if (!waiting.empty()) {
        spdlog::warn("changed, but takes effect only after a restart: {}",
                     fmt::join(waiting, ", "));
    }
    spdlog::info("configuration reloaded");
    return reload;
}

/// Those there are to be; nothing where servers had no names, or have none now: that takes a restart.
std::optional<std::vector<run::ServedServer>> Reloading::servers_of(const RunFlags& flags) const {
    auto servers = flags.servers();
    if (!named_ || servers.empty()) {
        return std::nullopt;
    }
    prepare_servers_(servers.size());
    return servers;
}

void Reloading::reopen(run::Reload& reload) const {
    const auto add = [&reload](run::Word word, const std::string& path, relay::UniqueFd file) {
        if (file.valid()) {
            reload.files.emplace_back(word, std::move(file));
        } else {
            spdlog::error("cannot reopen {}, keeping it as it is: {}", path,
                          std::generic_category().message(errno));
        }
    };
    for (const auto& [word, path, segmented] : recorded_) {
        if (segmented) {
            reload.files.emplace_back(word, relay::UniqueFd{}); // in the next segment
        } else if (!path.empty() && path != "-") {
            add(word, path, open_again_(word));
        }
    }
    if (!summary_.empty() && summary_ != "-") {
        add(run::Word::summary, summary_, relay::UniqueFd{sink::FileOutput::open_again(summary_)});
    }
}

} // namespace tw::cli
