#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/web/http_stream.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::process {

/// The content of a file that all runs share.
struct KeptFile {
    std::string content;
    std::string problem; ///< why there is no file, as "FILE: reason"; empty: there is one
};

/// Reads at most 512 bytes of `folder`/NAME. A missing file is created with mode 0600 and content
/// `fresh`, its folder with 0700. `is_valid`: whether the content found is valid. If it is not, or
/// the file cannot be kept, the content is `fresh`.
[[nodiscard]] KeptFile read_or_create_file(const std::filesystem::path& folder,
                                           const std::string& name, std::string fresh,
                                           bool (*is_valid)(std::string_view));

/// Returns random bytes. Throws std::system_error if the system has no randomness.
[[nodiscard]] std::string random_bytes(std::size_t size);

/// A key that all runs share, or one for this run only.
struct KeptKey {
    base::SipKey key{};
    std::string warning; ///< why the key is for this run only; empty: it is stored
};

/// Reads the key in `folder`/NAME, or creates it (see read_or_create_file). If it cannot be kept,
/// the key is for this run only. Throws std::system_error if the system has no randomness.
[[nodiscard]] KeptKey read_or_create_key(const std::filesystem::path& folder,
                                         const std::string& name);

/// The token that allows changes through the live page, from anywhere.
struct PageToken {
    std::string value;
    std::string file; ///< the file with the token; empty: the token is for this run only

    /// How to show the token in a log, as shell text: the token itself if only people read the log
    /// or no file holds it, else a command that prints the file.
    [[nodiscard]] std::string shown_text(bool to_people_only) const;

    friend bool operator==(const PageToken&, const PageToken&) = default;
};

/// Whether the text is a valid token: 16 to 256 of the characters that RFC 6750 allows.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

/// Reads the token from the first line of a file. Errors: one line with the reason.
[[nodiscard]] tl::expected<PageToken, std::string> read_token(const std::filesystem::path& file);

/// Reads the token in the state folder, or creates it. Throws std::system_error if the system has
/// no randomness.
[[nodiscard]] PageToken read_or_create_token(const std::filesystem::path& folder);

/// The address of a live page and who can read it.
struct PageAddress {
    std::string url;           ///< "http://127.0.0.1:9303/"
    bool is_open = false;      ///< other machines can reach and read it
    bool reads_freely = false; ///< no token is needed for reading
};

/// `host`: the page's host name; empty if unknown. Precondition: not a unix socket.
[[nodiscard]] PageAddress page_address(const web::HttpAddress& where, const std::string& host,
                                       bool open_reading);

} // namespace tw::process
