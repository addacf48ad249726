#include "proxy/web/page.h"

#include "proxy/web/gzip.h"

namespace tw::web {

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

PageFile asset(std::string_view content_type, std::string_view text) {
    return {.content_type = content_type,
            .text = text,
            .gzipped = std::make_shared<const std::string>(gzipped(text))};
}

} // namespace

bool has_page() {
    return TW_PAGE != 0;
}

const PageFile& page_html() {
    static const PageFile html = asset("text/html; charset=utf-8", kHtml);
    return html;
}

const PageFile& page_script() {
    static const PageFile script = asset("text/javascript; charset=utf-8", kScript);
    return script;
}

const PageFile& page_style() {
    static const PageFile style = asset("text/css; charset=utf-8", kStyle);
    return style;
}

std::string_view page_policy() {
    return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
           "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

} // namespace tw::web
