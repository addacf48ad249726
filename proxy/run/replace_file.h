#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>

namespace tw::run {

/// Writes a file aside and renames it, so that nobody ever reads half of it, and one that cannot be
/// written leaves what was there.
///
/// Errors: the system's.
[[nodiscard]] std::error_code replace_file(const std::filesystem::path& path,
                                           std::span<const std::byte> bytes);

} // namespace tw::run
