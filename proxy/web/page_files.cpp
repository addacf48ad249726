#include "proxy/web/page_files.h"

#include <algorithm>
#include <array>
#include <new>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <zlib.h>

namespace tw::web {

namespace beast = boost::beast;
namespace http = beast::http;

std::string gzip_text(std::string_view text) {
    constexpr int kGzip = 15 + 16; // windowBits of zlib: the largest window, with gzip's header
    constexpr int kMemory = 8;
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        throw std::bad_alloc{};
    }
    std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): zlib's interface has no const
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    out.shrink_to_fit(); // some callers keep the text for a long time
    deflateEnd(&stream);
    return out;
}

bool accepts_gzip(std::string_view accept_encoding) {
    for (const auto& [coding, parameters] : http::ext_list{accept_encoding}) {
        if (beast::iequals(coding, "gzip") || beast::iequals(coding, "x-gzip")) {
            return std::ranges::none_of(parameters, [](const auto& each) {
                // A weight of 0: "q=0", "q=0.0" and so on.
                return each.first == "q" &&
                       each.second.find_first_of("123456789") == beast::string_view::npos;
            });
        }
    }
    return false;
}

namespace {

#if TW_PAGE
// These literals are longer than -Woverlength-strings permits. GCC and Clang accept any length.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
constexpr std::string_view kHtml =
#include "proxy/web/index.html.inc"
    ;
constexpr std::string_view kScript =
#include "proxy/web/page.js.inc"
    ;
constexpr std::string_view kStyle =
#include "proxy/web/page.css.inc"
    ;
#pragma GCC diagnostic pop
static_assert(!kHtml.empty() && !kScript.empty() && !kStyle.empty());
#else
constexpr std::string_view kHtml =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>twscope</title>"
    "<p>This twscope was built without its live page (TW_PAGE=OFF). The API, /metrics and /healthz "
    "work.";
constexpr std::string_view kScript;
constexpr std::string_view kStyle;
#endif

} // namespace

bool is_page_built() {
    return TW_PAGE != 0;
}

const PageFile* find_page_file(std::string_view path) {
    static const std::array<PageFile, 3> files{
        {{"/", "text/html; charset=utf-8", kHtml, gzip_text(kHtml)},
         {"/page.js", "text/javascript; charset=utf-8", kScript, gzip_text(kScript)},
         {"/page.css", "text/css; charset=utf-8", kStyle, gzip_text(kStyle)}}};
    const auto* const file = std::ranges::find(files, path, &PageFile::path);
    return file == files.end() ? nullptr : file;
}

std::string_view page_security_policy() {
    return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
           "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

} // namespace tw::web
