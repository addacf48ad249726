#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tw::process {

/// The files and memory that a confined observer process may use.
struct Permissions {
    /// Files and folders, in addition to those of the system.
    std::vector<std::filesystem::path> readable{};
    /// Folders in which it may create and remove files.
    std::vector<std::filesystem::path> writable{};
    std::uint64_t memory_bytes = 0; ///< 0: no limit
};

/// The restrictions that apply to the observer's process. Which ones do depends on kernel and
/// build.
struct Confinement {
    bool no_new_privileges = false;
    bool seccomp = false; ///< system calls outside of an allow-list fail with EPERM
    int landlock = 0;     ///< version of Landlock; 0: file access is not restricted
    std::uint64_t memory_bytes = 0;
};

/// Drops all capabilities except those for opening files and low ports, also for programs that this
/// process starts. Must be called before threads are started.
void drop_privileges();

/// Restricts this thread and the threads it starts later; the memory limit applies to the process.
[[nodiscard]] Confinement confine(const Permissions& permissions);

/// The restrictions that confine() could apply on this system.
[[nodiscard]] Confinement possible_confinement();

/// "no new privileges, seccomp, Landlock 7, 2048 MiB of memory", or "nothing"
[[nodiscard]] std::string describe(const Confinement& confinement);

} // namespace tw::process
