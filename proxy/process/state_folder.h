#pragma once

#include "proxy/base/keyed_hash.h"

#include <filesystem>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::process {

/// A key that all runs of twscope share, or a key for this run only.
struct StoredKey {
    base::SipKey key{};
    std::string warning; ///< why the key is for this run only; empty if it is stored
};

/// Reads the key from a file in the state folder. If the file is missing, creates the key, the file
/// with mode 0600 and its folder with mode 0700. If the file cannot be used, returns a new key for
/// this run only. Errors: throws std::system_error if the system has no randomness.
[[nodiscard]] StoredKey read_or_create_key(const std::filesystem::path& folder,
                                           const std::string& name);

/// A token. Anyone who has it may make changes through the live page.
struct PageToken {
    std::string value;
    std::string file; ///< the file with the token; empty: the token is for this run only

    /// Returns shell text for log messages: the token itself if only people read the log; otherwise
    /// a command that prints the token's file, or an empty text if the token is in no file.
    [[nodiscard]] std::string shell_text_for_log(bool is_read_by_people_only) const;

    friend bool operator==(const PageToken&, const PageToken&) = default;
};

/// Returns whether the text is a valid token: 16 to 256 characters that RFC 6750 allows.
[[nodiscard]] bool is_valid_token(std::string_view text) noexcept;

/// Reads the token from the first line of a file. Errors: one line for the user.
[[nodiscard]] tl::expected<PageToken, std::string> read_token(const std::filesystem::path& file);

/// Reads the token from a file in the state folder, or creates the token and the file, as
/// read_or_create_key() does. Errors: throws std::system_error if the system has no randomness.
[[nodiscard]] PageToken read_or_create_token(const std::filesystem::path& folder);

} // namespace tw::process
