#include "proxy/admin/page.h"

#include <array>
#include <cstddef>

#include <openssl/evp.h>
#include <openssl/sha.h>

namespace tw::admin {

namespace {

constexpr std::string_view kPage =
#include "proxy/admin/page_html.inc"
    ;

/// What stands in the page's one element of this name.
constexpr std::string_view content_of(std::string_view element) {
    const std::size_t tag = kPage.find(element);
    const std::size_t begin = kPage.find('>', tag) + 1;
    return kPage.substr(begin, kPage.find("</", begin) - begin);
}

constexpr std::string_view kScript = content_of("<script");
constexpr std::string_view kStyle = content_of("<style");
static_assert(!kScript.empty() && !kStyle.empty());

/// "'sha256-...'" of a text, as a policy names it.
std::string source_of(std::string_view text) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    constexpr std::size_t kBase64Chars = (digest.size() + 2) / 3 * 4;
    std::array<unsigned char, kBase64Chars + 1> base64{};
    EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
    return "'sha256-" + std::string{base64.begin(), base64.end() - 1} + "'";
}

} // namespace

std::string_view page_html() {
    return kPage;
}

std::string page_policy() {
    return "default-src 'none'; script-src " + source_of(kScript) + "; style-src " +
           source_of(kStyle) +
           "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
           "frame-ancestors 'none'";
}

} // namespace tw::admin
