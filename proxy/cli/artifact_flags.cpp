#include "proxy/cli/artifact_flags.h"

#include "proxy/cli/settings.h"

#include <cerrno>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace tw::cli {

void ArtifactFlags::add_to(CLI::App& command) {
    command
        .add_option("--demo", demo,
                    "Write what each client saw to this folder as demos for the game, one per "
                    "session and map; with --view world, one per map with all players")
        ->type_name("DIR");
    command
        .add_option("--demo-version", demo_version,
                    "Demo version: 6 for DDNet; 4 also for vanilla Teeworlds 0.6, without DDNet's "
                    "own items and messages and clients beyond the 16th")
        ->check(CLI::IsMember({4, 6}))
        ->capture_default_str();
    command
        .add_option("-w,--write", capture,
                    "Write the datagrams of all sessions as a pcapng capture, with sessions and "
                    "findings as "
                    "comments; it contains passwords, so it requires --show-secrets")
        ->type_name("FILE");
    command
        .add_option("--write-filter", capture_filter,
                    "Write to --write only datagrams with a matching record, for example 'session "
                    "== 3' (proxy/filter/FILTERS.md)")
        ->type_name("EXPRESSION");
}

std::optional<sink::DemoOptions> ArtifactFlags::demos(const RecordFlags& records) const {
    if (!wants_demos()) {
        return std::nullopt;
    }
    const auto folder = existing_folders("--demo", {demo}).front();
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        throw UsageError{fmt::format("--demo {}: {}; name a writable folder", demo,
                                     std::generic_category().message(errno))};
    }
    return sink::DemoOptions{.folder = folder,
                             .version = demo_version,
                             .messages = !records.no_messages,
                             .show_secrets = records.show_secrets};
}

void ArtifactFlags::check_capture(bool show_secrets) const {
    if (!capture.empty() && !show_secrets) {
        throw UsageError{
            fmt::format("--write {}: a capture contains every byte, passwords and whispers "
                        "included, and cannot be redacted; add --show-secrets to allow it",
                        capture)};
    }
}

std::vector<std::filesystem::path> ArtifactFlags::folders() const {
    return wants_demos() ? std::vector<std::filesystem::path>{demo}
                         : std::vector<std::filesystem::path>{};
}

} // namespace tw::cli
