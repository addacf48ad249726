#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::bus {

/// What a file with secrets of the bus contains: credentials as nsc writes them, then certificates
/// and a key (PEM).
struct SecretsFile {
    bool has_credentials = false;
    std::string certificate{}; ///< ours: the first one, if there is a key; PEM
    std::string key{};         ///< of the certificate; PEM
    std::string authorities{}; ///< all other certificates; empty for the system's; PEM

    [[nodiscard]] bool wants_tls() const { return !certificate.empty() || !authorities.empty(); }

    friend bool operator==(const SecretsFile&, const SecretsFile&) = default;
};

/// Reads the text of such a file. Errors: what is wrong, in one line.
[[nodiscard]] tl::expected<SecretsFile, std::string> parse_secrets(std::string_view text);

/// Reads a file. Errors: what is wrong, in one line, without the file's name.
[[nodiscard]] tl::expected<SecretsFile, std::string> read_secrets(const std::string& path);

} // namespace tw::bus
