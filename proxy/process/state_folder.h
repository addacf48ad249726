#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/web/http_stream.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::process {

/// What is kept in a file from run to run.
struct KeptFile {
    std::string content;
    std::string problem; ///< "FILE: why"; empty: it is kept, and the same in the next run
};

/// The first so many bytes of `folder`/NAME; made of `fresh` when it is not there: the folder with
/// mode 0700, the file with 0600. `is_good`: whether what was found is what it should be. Where it
/// is not, or cannot be kept, `fresh`.
[[nodiscard]] KeptFile keep_file(const std::filesystem::path& folder, const std::string& name,
                                 std::string fresh, bool (*is_good)(std::string_view));

/// So many random bytes. Throws std::system_error when there is no randomness.
[[nodiscard]] std::string random_bytes(std::size_t size);

/// A key, and what has to be said about it.
struct KeptKey {
    base::SipKey key{};
    std::string warning; ///< empty: it is kept, and the same in the next run
};

/// The key in `folder`/NAME, made when it is not there (see keep_file). Where it cannot be kept, one
/// for this run. Throws std::system_error when there is no randomness.
[[nodiscard]] KeptKey keep_key(const std::filesystem::path& folder, const std::string& name);

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

/// How people reach a page.
struct PageAddress {
    std::string url;           ///< "http://127.0.0.1:9303/"
    bool is_open = false;      ///< whoever reaches it from another machine may read it
    bool reads_freely = false; ///< no token is needed to read it
};

/// `host`: a name it goes by; empty: none is known. Precondition: it is no unix socket.
[[nodiscard]] PageAddress page_address(const web::HttpAddress& where, const std::string& host,
                                       bool open_reading);

} // namespace tw::process
