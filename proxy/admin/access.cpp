#include "proxy/admin/access.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace tw::admin {

namespace {

constexpr std::string_view kScheme = "bearer";

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

/// Of equal length whatever it is of.
Digest digest_of(std::string_view text) {
    Digest digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    return digest;
}

/// What stands behind the scheme; empty when it is another one.
std::string_view credentials(std::string_view authorization) {
    const auto end = authorization.find(' ');
    const std::string_view scheme = authorization.substr(0, end);
    const bool ours = std::equal(scheme.begin(), scheme.end(), kScheme.begin(), kScheme.end(),
                                 [](unsigned char a, char b) { return std::tolower(a) == b; });
    if (!ours || end == std::string_view::npos) {
        return {};
    }
    return authorization.substr(
        std::min(authorization.find_first_not_of(' ', end), authorization.size()));
}

} // namespace

bool shows_token(std::string_view authorization, std::string_view token) {
    const std::string_view shown = credentials(authorization);
    return !token.empty() && !shown.empty() &&
           CRYPTO_memcmp(digest_of(shown).data(), digest_of(token).data(), sizeof(Digest)) == 0;
}

std::optional<Response> refuse_access(const Request& request, Right right,
                                      const AccessOptions& options) {
    if (request.spare && right != Right::health) {
        return Response{.status = 503, .body = "too many connections; try again\n"};
    }
    const bool open =
        right == Right::health || right == Right::page ||
        (right == Right::read && (options.open_reading || request.way == Way::loopback));
    if (open || request.way == Way::owner || shows_token(request.authorization, options.token)) {
        return std::nullopt;
    }
    return Response{.status = 401,
                    .body = "this requires the token, as 'Authorization: Bearer TOKEN'" +
                            (options.how.empty() ? std::string{} : "; " + options.how) + '\n',
                    .challenge = "Bearer realm=\"twscope\""};
}

} // namespace tw::admin
