#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include <tl/expected.hpp>

namespace tw::base {

/// Reads a small file that a person wrote, such as settings, a token, or a description of objects.
/// A pipe is read until its writer closes it. Reading a pipe fails after one second, because a
/// reload of the settings must not block.
///
/// Errors: those of the system; is_a_directory; file_too_large for more than `max_bytes` bytes;
/// no_message_available for a pipe without a writer or with a writer that is too slow.
[[nodiscard]] tl::expected<std::string, std::error_code>
read_small_file(const std::filesystem::path& path, std::size_t max_bytes);

/// Writes all bytes to an open file, with several system calls if necessary.
///
/// Errors: those of the system.
[[nodiscard]] std::error_code write_all(int file, std::span<const std::byte> bytes);

/// Replaces a file by writing a temporary file and renaming it. Readers never see a partial file.
/// After an error, the file has its old content.
///
/// Errors: those of the system.
[[nodiscard]] std::error_code replace_file(const std::filesystem::path& path,
                                           std::span<const std::byte> bytes);

/// Locks a file for its writer until the descriptor `file` and all its copies are closed. A
/// descriptor that was opened separately cannot lock the file meanwhile, even in the same process.
/// Returns false if the file is already locked (errno: EAGAIN or EACCES) or cannot be locked.
[[nodiscard]] bool lock_file(int file);
/// Returns whether a writer has locked the file with lock_file().
[[nodiscard]] bool is_locked(const std::filesystem::path& path);

} // namespace tw::base
