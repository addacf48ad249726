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
                    "Write what each client was shown as demos that the game plays, one for each "
                    "session and map, in this folder; with --view world one with everybody in it "
                    "for each map")
        ->type_name("DIR");
    command
        .add_option("--demo-version", demo_version,
                    "6: for DDNet, everything; 4: also for vanilla Teeworlds 0.6, without what it "
                    "does not know: DDNet's own items and messages, clients beyond the 16th")
        ->check(CLI::IsMember({4, 6}))
        ->capture_default_str();
    command
        .add_option("-w,--write", capture,
                    "Write all datagrams as a capture (pcapng), with sessions and findings as "
                    "comments; it holds every password, so it needs --show-secrets")
        ->type_name("FILE");
    command
        .add_option("--write-filter", capture_filter,
                    "Write to --write only the datagrams about which a record matches, for example "
                    "'session == 3' (proxy/filter/FILTERS.md)")
        ->type_name("EXPRESSION");
}

std::optional<sink::DemoOptions> ArtifactFlags::demos(const RecordFlags& records) const {
    if (!wants_demos()) {
        return std::nullopt;
    }
    const auto folder = existing_folders("--demo", {demo}).front();
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        throw UsageError{fmt::format("--demo {}: {}; name a folder that may be written to", demo,
                                     std::generic_category().message(errno))};
    }
    return sink::DemoOptions{.folder = folder,
                             .version = demo_version,
                             .messages = !records.no_messages,
                             .show_secrets = records.show_secrets};
}

void ArtifactFlags::check_capture(bool show_secrets) const {
    if (!capture.empty() && !show_secrets) {
        throw UsageError{fmt::format(
            "--write {}: a capture holds every byte as it was sent, passwords and whispers too, "
            "and cannot be redacted; add --show-secrets if that is what you want",
            capture)};
    }
}

std::vector<std::filesystem::path> ArtifactFlags::folders() const {
    return wants_demos() ? std::vector<std::filesystem::path>{demo}
                         : std::vector<std::filesystem::path>{};
}

} // namespace tw::cli
