#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tw::process {

/// What the observer's process may still do once everything it needs from outside is open.
struct Allowance {
    std::vector<std::filesystem::path> readable{}; ///< files and folders, besides the system's own
    std::vector<std::filesystem::path>
        writable{};                 ///< folders, files in which it may make and remove
    std::uint64_t memory_bytes = 0; ///< 0: no limit
};

/// What keeps the observer's process in its place; as much as kernel and build have.
struct Confinement {
    bool no_new_privileges = false;
    bool seccomp = false; ///< system calls by an allow-list; others fail with EPERM
    int landlock = 0;     ///< the kernel's version of it; 0: none
    std::uint64_t memory_bytes = 0;
};

/// Gives up what root or a file's capabilities give, but for what opening files and a low port takes;
/// no program that this process starts gets it back. Has to come before its threads.
void give_up_rights();

/// Takes from this thread, and those it starts, all it does not need; the limit of memory is the
/// process's.
[[nodiscard]] Confinement confine(const Allowance& allowance);

/// What confine() would find here.
[[nodiscard]] Confinement possible_confinement();

/// "no new privileges, seccomp, Landlock 7, 2048 MiB of memory", or "nothing"
[[nodiscard]] std::string describe(const Confinement& confinement);

} // namespace tw::process
