#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include <tl/expected.hpp>

namespace tw::base {

/// Reads a small file that a person wrote: settings, a token, objects. It may be a pipe, which is read
/// until its writer closes it; a writer that stalls is not waited for longer than a second, because whoever
/// reloads has a game to forward.
///
/// Errors: the system's; is_a_directory; file_too_large for more than `most` bytes; no_message_available
/// for a pipe without a writer, or with one that stalls.
[[nodiscard]] tl::expected<std::string, std::error_code>
read_small_file(const std::filesystem::path& path, std::size_t most);

/// Writes all of the bytes to an open file, in as many calls as it takes.
///
/// Errors: the system's.
[[nodiscard]] std::error_code write_all(int file, std::span<const std::byte> bytes);

/// Writes a file aside and renames it, so that nobody ever reads half of it, and one that cannot be
/// written leaves what was there.
///
/// Errors: the system's.
[[nodiscard]] std::error_code replace_file(const std::filesystem::path& path,
                                           std::span<const std::byte> bytes);

} // namespace tw::base
