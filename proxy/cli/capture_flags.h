#pragma once

#include "proxy/capture/capture_sessions.h"
#include "proxy/inspect/session.h"
#include "proxy/wire/message_set.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags of the commands that read captures.
struct CaptureFlags {
    std::vector<std::string> paths;
    std::string server; ///< empty: servers are recognised
    std::size_t memory_mib = inspect::MemoryBudget::kDefaultBytes >> 20U;

    void add_to(CLI::App& command);
    /// The files to read: as they are named, and of a folder its segments in the order in which they
    /// were begun. Errors: UsageError for a folder without any.
    [[nodiscard]] std::vector<std::string> files() const;
    /// Whose traffic counts. Errors: UsageError.
    [[nodiscard]] capture::ServerGuess servers() const;

    [[nodiscard]] std::size_t memory_bytes() const { return memory_mib << 20U; }
};

/// Adds a server whose traffic counts, as --server names it. Errors: UsageError.
void add_server(capture::ServerGuess& guess, const std::string& server);

/// --memory of the commands that inspect.
void add_memory_flag(CLI::App& command, std::size_t& memory_mib);

/// The flags of what they look up besides: maps, and a mod's objects.
struct LookupFlags {
    std::vector<std::string> maps;
    std::string objects_file;

    /// `maps_for`: what the maps are good for there.
    void add_to(CLI::App& command, std::string_view maps_for);
    /// Errors: UsageError for a folder that is not there.
    [[nodiscard]] std::vector<std::filesystem::path> map_folders() const;
    /// The standard ones, and those of the file. Errors: UsageError.
    [[nodiscard]] wire::ModDescription description() const;
};

} // namespace tw::cli
