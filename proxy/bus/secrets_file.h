#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::bus {

/// What a file with secrets of the bus contains: credentials as nsc writes them, then certificates
/// and a key (PEM).
struct SecretsFile {
    bool has_credentials = false;
    std::string certificate{}; ///< our own certificate (PEM): the file's first one if it has a key
    std::string key{};         ///< the key of our certificate (PEM)
    std::string
        authorities{}; ///< all other certificates (PEM); empty to trust the system's authorities

    [[nodiscard]] bool wants_tls() const { return !certificate.empty() || !authorities.empty(); }

    friend bool operator==(const SecretsFile&, const SecretsFile&) = default;
};

/// Parses the text of a secrets file. Errors: one line that says what is wrong.
[[nodiscard]] tl::expected<SecretsFile, std::string> parse_secrets(std::string_view text);

/// Reads and parses a secrets file. Errors: one line that says what is wrong, without the file's name.
[[nodiscard]] tl::expected<SecretsFile, std::string> read_secrets(const std::string& path);

} // namespace tw::bus
