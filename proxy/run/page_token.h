#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::run {

/// With it the live page may be used to change something, from anywhere.
struct PageToken {
    std::string value;
    std::string file; ///< that holds it; empty: it is this run's only

    /// What stands for it where people read it, in a shell's words: the token itself where only
    /// they see it, or where no file holds it.
    [[nodiscard]] std::string shown(bool to_people_only) const;

    friend bool operator==(const PageToken&, const PageToken&) = default;
};

/// Whether it can be one: 16 to 256 of the characters that RFC 6750 gives to tokens.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

/// The first line of a file. Errors: one line that says why it holds none.
[[nodiscard]] tl::expected<PageToken, std::string> read_token(const std::filesystem::path& file);

/// The one in the state folder, made when there is none. Throws std::system_error when there is no
/// randomness.
[[nodiscard]] PageToken keep_token(const std::filesystem::path& folder);

} // namespace tw::run
