#include "proxy/cli/background.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/log.h"
#include "proxy/cli/observing.h"
#include "proxy/cli/settings.h"
#include "proxy/cli/tap_flags.h"
#include "proxy/run/service_notice.h"
#include "proxy/run/tap_run.h"
#include "proxy/sink/complaint.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::cli {

namespace {

constexpr const char* kTapCommand = "tap";

constexpr const char* kAboutTap =
    "A tap only observes, at no cost to the game. It needs CAP_NET_RAW to open the interface and "
    "drops it afterwards. It cannot change traffic: --resync, --impair and other flags that affect "
    "the line belong to proxy. See docs/tap.md.";

std::unique_ptr<RunFlags> make_tap_flags() {
    return std::make_unique<TapFlags>();
}

run::TapRunOptions tap_run_options(const TapFlags& flags) {
    constexpr unsigned kMiB = 20;
    constexpr double kSecond = 1e9;
    return {.live = {.interface = flags.interface,
                     .ports = flags.ports(),
                     .buffer_bytes = flags.buffer_mib << kMiB},
            .servers = flags.guess(),
            .shown = flags.shown(),
            .limits = {.idle_timeout = static_cast<std::int64_t>(flags.idle_timeout * kSecond),
                       .max_sessions = flags.max_sessions},
            .ring_bytes = flags.ring_mib << kMiB};
}

int run_tap(const TapFlags& flags, const Settings& settings, const Invocation& invocation,
            const std::function<void()>& started) {
    flags.check(
        settings); // the observer's part, too: whoever mistyped it is to hear of it once, at once
    run::TapRunOptions options = tap_run_options(flags);
    options.supervision = supervision(kTapCommand, flags, settings, invocation, make_tap_flags);
    std::optional<run::TapRun> tap;
    try {
        tap.emplace(std::move(options));
    } catch (const capture::NoInterfaceError& error) {
        sink::complain("{}", error.what());
        return kExitNotYet;
    } catch (const capture::NoRightError& error) {
        throw UsageError{fmt::format(
            "{}: this needs CAP_NET_RAW: run 'sudo setcap cap_net_raw=ep TWSCOPE' with this "
            "program's path, set AmbientCapabilities=CAP_NET_RAW in its systemd unit, or use sudo",
            error.what())};
    } catch (const capture::CaptureError& error) {
        throw UsageError{error.what()};
    }
    if (const auto ending = tap->open()) {
        return exit_code_of_no_start(*ending);
    }
    run::notify_ready();
    started();
    try {
        const int code = exit_code(tap->run());
        return code == 0 && tap->failed() ? kExitFailed : code;
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return kExitFailed;
    }
}

int run_tap_command(const TapFlags& flags, Settings& settings, const Invocation& invocation) {
    prepare_signals(invocation);
    if (invocation.observer != 0) {
        return observe(flags, settings, invocation);
    }
    settings.complete();
    if (flags.interface.empty()) {
        throw UsageError{
            "tap needs an interface: -i IFACE, for example -i eth0 ('ip link' lists them)"};
    }
    open_log(flags.log_level);
    const auto start = [&](const std::function<void()>& started) {
        return run_tap(flags, settings, invocation, started);
    };
    return flags.background ? in_background(start) : start([] {});
}

} // namespace

Action add_tap_command(CLI::App& app, Invocation invocation) {
    CLI::App* command = app.add_subcommand(
        kTapCommand, "Observe traffic on an interface and record what happens, without forwarding");
    command->footer(kAboutTap);
    auto flags = std::make_shared<TapFlags>();
    auto settings = std::make_shared<Settings>(*command);
    flags->add_to(*command);
    return [flags, settings, invocation = std::move(invocation)] {
        return run_tap_command(*flags, *settings, invocation);
    };
}

} // namespace tw::cli
