#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tw::process {

/// The files and memory that a confined observer process may use.
struct ConfinedAccess {
    /// The files and folders that the observer may read, besides system folders such as /usr/share.
    std::vector<std::filesystem::path> readable{};
    /// The folders in which the observer may create and remove files.
    std::vector<std::filesystem::path> writable{};
    /// The folders in which the observer may create, read and write files, but remove none.
    std::vector<std::filesystem::path> writable_without_removal{};
    std::uint64_t memory_bytes = 0; ///< the most memory of the process; 0: no limit
};

/// The restrictions that are in force for the observer's process. They depend on the kernel and on
/// how the program was built.
struct Confinement {
    bool no_new_privileges = false;
    bool seccomp = false;     ///< system calls that are not in an allow-list fail with EPERM
    int landlock_version = 0; ///< version of Landlock; 0: file access is not restricted
    std::uint64_t memory_bytes = 0;
};

/// Drops all capabilities of this process and of programs that it starts, except those for opening
/// files and low ports. Must be called before threads are started.
void drop_privileges();

/// Restricts the calling thread and the threads that it starts later. The memory limit applies to
/// the whole process. Returns the restrictions in force.
[[nodiscard]] Confinement confine_calling_thread(const ConfinedAccess& permissions);

/// Returns the restrictions that confine_calling_thread() can put in force on this system.
[[nodiscard]] Confinement supported_confinement();

/// Returns a text such as "no new privileges, seccomp, Landlock 7, 2048 MiB of memory".
[[nodiscard]] std::string describe(const Confinement& confinement);

} // namespace tw::process
