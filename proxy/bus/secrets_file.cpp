#include "proxy/bus/secrets_file.h"

#include "proxy/base/files.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace tw::bus {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kClose = "-----";
constexpr std::string_view kCredentials = "NATS USER JWT";
constexpr std::string_view kCertificate = "CERTIFICATE";
constexpr std::string_view kKey = "PRIVATE KEY";

/// Returns the PEM block at the start of the text; empty if its END line is missing or has another
/// label.
std::string_view block_of(std::string_view text, std::string_view label) {
    const std::string end = fmt::format("-----END {}-----", label);
    const std::size_t at = text.find(end);
    return at == std::string_view::npos ? std::string_view{} : text.substr(0, at + end.size());
}

/// Separates our own certificate from those of authorities. Errors: what the file lacks.
tl::expected<SecretsFile, std::string> complete(SecretsFile secrets) {
    if (secrets.key.empty()) { // without a key, all certificates are of authorities
        secrets.authorities.insert(0, secrets.certificate);
        secrets.certificate.clear();
    } else if (secrets.certificate.empty()) {
        return tl::unexpected{std::string{"the private key has no certificate"}};
    }
    if (!secrets.has_credentials && !secrets.wants_tls()) {
        return tl::unexpected{
            std::string{"contains neither credentials (.creds) nor certificates"}};
    }
    return secrets;
}

} // namespace

tl::expected<SecretsFile, std::string> parse_secrets(std::string_view text) {
    SecretsFile secrets;
    std::size_t num_certificates = 0;
    for (std::size_t at = 0; (at = text.find(kBegin, at)) != std::string_view::npos; ++at) {
        const std::string_view rest = text.substr(at);
        const std::string_view label =
            rest.substr(kBegin.size(), rest.find(kClose, kBegin.size()) - kBegin.size());
        if (label == kCredentials) {
            if (num_certificates != 0 || !secrets.key.empty()) {
                return tl::unexpected{std::string{"the credentials must come first"}};
            }
            secrets.has_credentials = true;
        } else if (label == kCertificate || label.ends_with(kKey)) {
            const std::string_view block = block_of(rest, label);
            if (block.empty()) {
                return tl::unexpected{fmt::format(
                    "a {} has no end", label == kCertificate ? "certificate" : "private key")};
            }
            if (label != kCertificate) {
                secrets.key = std::string{block} + '\n';
                continue;
            }
            std::string& to = num_certificates++ == 0 ? secrets.certificate : secrets.authorities;
            to.append(block).push_back('\n');
        }
    }
    return complete(std::move(secrets));
}

tl::expected<SecretsFile, std::string> read_secrets(const std::string& path) {
    const auto text = base::read_small_file(path, kMaxBytes);
    return text ? parse_secrets(*text) : tl::unexpected{text.error().message()};
}

} // namespace tw::bus
