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
    std::string server; ///< empty if servers are to be recognised
    std::size_t memory_mib = inspect::MemoryBudget::kDefaultBytes >> 20U;

    void add_to(CLI::App& command);
    /// The files to read, in the order given. A folder stands for its segments, in the order of
    /// their start.
    /// Errors: UsageError for a folder without segments.
    [[nodiscard]] std::vector<std::string> files() const;
    /// The servers whose traffic is read.
    /// Errors: UsageError.
    [[nodiscard]] capture::ServerGuess servers() const;

    [[nodiscard]] std::size_t memory_bytes() const { return memory_mib << 20U; }
};

/// Adds a server whose traffic is read, in the format of --server.
/// Errors: UsageError.
void add_server(capture::ServerGuess& guess, const std::string& server);

/// Adds --memory.
void add_memory_flag(CLI::App& command, std::size_t& memory_mib);

/// The flags about maps and a mod's objects.
struct LookupFlags {
    std::vector<std::string> maps;
    std::string objects_file;

    /// `maps_for`: the use of the maps, for the help text.
    void add_to(CLI::App& command, std::string_view maps_for);
    /// The folders in which maps are searched. Errors: UsageError for a folder that does not exist.
    [[nodiscard]] std::vector<std::filesystem::path> map_folders() const;
    /// The standard objects and messages, and those of `objects_file`.
    /// Errors: UsageError.
    [[nodiscard]] wire::ModDescription description() const;
};

} // namespace tw::cli
