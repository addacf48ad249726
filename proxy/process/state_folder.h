#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/web/http_stream.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::process {

/// The content of a file that is kept from run to run.
struct KeptFile {
    std::string content;
    std::string problem; ///< "FILE: why"; empty: the file is kept
};

/// Reads at most 512 bytes of `folder`/NAME. A missing file is created with mode 0600 and content
/// `fresh`, its folder with 0700. `is_good`: whether the content found is valid. If it is not, or
/// the file cannot be kept, the content is `fresh`.
[[nodiscard]] KeptFile keep_file(const std::filesystem::path& folder, const std::string& name,
                                 std::string fresh, bool (*is_good)(std::string_view));

/// Returns random bytes. Throws std::system_error if the system has no randomness.
[[nodiscard]] std::string random_bytes(std::size_t size);

/// A key, and a warning if it is not kept.
struct KeptKey {
    base::SipKey key{};
    std::string warning; ///< empty: the key is kept for the next run
};

/// Reads the key in `folder`/NAME, or creates it (see keep_file). If it cannot be kept, the key is
/// for this run only. Throws std::system_error if the system has no randomness.
[[nodiscard]] KeptKey keep_key(const std::filesystem::path& folder, const std::string& name);

/// The token that allows changes through the live page, from anywhere.
struct PageToken {
    std::string value;
    std::string file; ///< the file with the token; empty: the token is for this run only

    /// How to show the token in a log, as shell text: the token itself if only people read the log
    /// or no file holds it, else a command that prints the file.
    [[nodiscard]] std::string shown(bool to_people_only) const;

    friend bool operator==(const PageToken&, const PageToken&) = default;
};

/// Whether the text is a valid token: 16 to 256 of the characters that RFC 6750 allows.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

/// Reads the token from the first line of a file. Errors: one line with the reason.
[[nodiscard]] tl::expected<PageToken, std::string> read_token(const std::filesystem::path& file);

/// Reads the token in the state folder, or creates it. Throws std::system_error if the system has
/// no randomness.
[[nodiscard]] PageToken keep_token(const std::filesystem::path& folder);

/// How to reach a page.
struct PageAddress {
    std::string url;           ///< "http://127.0.0.1:9303/"
    bool is_open = false;      ///< other machines can reach and read it
    bool reads_freely = false; ///< no token is needed for reading
};

/// `host`: the page's host name; empty if unknown. Precondition: not a unix socket.
[[nodiscard]] PageAddress page_address(const web::HttpAddress& where, const std::string& host,
                                       bool open_reading);

} // namespace tw::process
