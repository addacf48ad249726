#include "proxy/cli/flight_flags.h"

#include "proxy/cli/recording_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/report/fail_on.h"

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace tw::cli {

namespace {

constexpr std::chrono::seconds kUsualTime{60};
constexpr std::uint64_t kUsualBytes = std::uint64_t{64} << 20U;
/// What is kept until the next file may be written.
constexpr std::chrono::nanoseconds kLeastTime{sink::FlightRecorder::kLeastPause};
/// Less holds no snapshot of a full server.
constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20U;

/// Its two values; a variable has both in one text, with a blank between them.
std::pair<std::string, std::string> parts_of(const std::vector<std::string>& what) {
    if (what.size() > 1) {
        return {what[0], what[1]};
    }
    const std::string& text = what.front();
    const auto blank = text.find(' ');
    if (blank == std::string::npos) {
        throw UsageError{fmt::format(
            "--flight {}: expected limits and a folder, for example 60s,64MiB DIR", text)};
    }
    return {text.substr(0, blank), text.substr(blank + 1)};
}

} // namespace

void FlightFlags::add_to(CLI::App& command) {
    command
        .add_option("--flight", what,
                    "Keep the latest datagrams in memory, for example 60s,64MiB, and write them to "
                    "this folder as a capture on SIGUSR2, from the live page, or on a --flight-on "
                    "finding; it contains passwords, so it requires --show-secrets")
        ->type_name("TIME,SIZE DIR")
        ->expected(1, 2);
    repeatable(
        command
            .add_option(
                "--flight-on", triggers,
                "Findings that trigger --flight: ids, or a minimum severity (info, warning, error)")
            ->type_name("ID,...")
            ->delimiter(','));
    command.add_flag("--flight-all", whole,
                     "On a finding, write all sessions instead of only the one it is about");
}

std::filesystem::path FlightFlags::folder() const {
    auto folder = existing_folders("--flight", {parts_of(what).second}).front();
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        throw UsageError{fmt::format("--flight {}: {}; name a writable folder", folder.string(),
                                     std::generic_category().message(errno))};
    }
    return folder;
}

std::optional<sink::FlightOptions> FlightFlags::options(bool show_secrets) const {
    if (!on()) {
        if (!triggers.empty() || whole) {
            throw UsageError{"--flight-on and --flight-all need --flight, for example --flight "
                             "60s,64MiB DIR"};
        }
        return std::nullopt;
    }
    if (!show_secrets) {
        throw UsageError{"--flight: a capture contains every byte, passwords and whispers "
                         "included, and cannot be redacted; add --show-secrets to allow it"};
    }
    const auto kept = parse_time_and_size("--flight", parts_of(what).first);
    const auto parsed = report::FailOn::parse(triggers);
    if (!parsed) {
        throw UsageError{fmt::format(
            "--flight-on {}: neither a finding nor a severity ('twscope findings' lists them)",
            parsed.error())};
    }
    if (kept.time.count() != 0 && kept.time < kLeastTime) {
        throw UsageError{
            fmt::format("--flight {}: keep at least 5 s, the shortest time between files",
                        parts_of(what).first)};
    }
    return sink::FlightOptions{
        .folder = folder(),
        .time = std::chrono::nanoseconds{kept.time.count() == 0 ? kUsualTime : kept.time}.count(),
        .bytes = kept.bytes == 0 ? kUsualBytes : kept.bytes,
        .triggers = parsed->findings(),
        .whole = whole};
}

void FlightFlags::check(bool show_secrets, std::size_t memory_mib) const {
    const auto checked = options(show_secrets);
    if (!checked) {
        return;
    }
    if (checked->bytes < kLeastBytes || checked->bytes > (std::uint64_t{memory_mib} << 20U) / 2) {
        throw UsageError{fmt::format("--flight {}: keep at least 1 MiB, and at most half of "
                                     "--memory ({} MiB)",
                                     what.front(), memory_mib)};
    }
}

} // namespace tw::cli
