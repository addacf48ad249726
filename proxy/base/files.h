#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include <tl/expected.hpp>

namespace tw::base {

/// Reads a small file that a person wrote, such as settings, a token, or a description of objects. A
/// pipe is read until its writer closes it. The call fails if that takes longer than one second, so
/// that a reload does not block for long.
///
/// Errors: the system's; is_a_directory; file_too_large for more than `most` bytes;
/// no_message_available for a pipe whose writer is missing or stalls.
[[nodiscard]] tl::expected<std::string, std::error_code>
read_small_file(const std::filesystem::path& path, std::size_t most);

/// Writes all bytes to an open file, in several calls if necessary.
///
/// Errors: the system's.
[[nodiscard]] std::error_code write_all(int file, std::span<const std::byte> bytes);

/// Replaces a file by writing a temporary one and renaming it: readers never see a partial file,
/// and on errors the old content stays.
///
/// Errors: the system's.
[[nodiscard]] std::error_code replace_file(const std::filesystem::path& path,
                                           std::span<const std::byte> bytes);

/// Locks a file for its writer until this descriptor and its copies are closed, at the latest when the
/// process ends. The lock also holds against other descriptors of the same process. Returns false if
/// another one has the lock (errno is EAGAIN or EACCES) or the file cannot be locked.
[[nodiscard]] bool lock_file(int file);
/// Returns whether a writer has locked the file.
[[nodiscard]] bool is_locked(const std::filesystem::path& path);

} // namespace tw::base
