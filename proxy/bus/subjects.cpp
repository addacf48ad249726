#include "proxy/bus/subjects.h"

#include "proxy/filter/line_record.h"

#include <algorithm>

namespace tw::bus {

namespace {

bool may_stay(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '-' || character == '_';
}

} // namespace

std::string subject_token(std::string_view text) {
    std::string token{text.substr(0, kMaxToken)};
    std::replace_if(
        token.begin(), token.end(), [](char character) { return !may_stay(character); }, '_');
    return token.empty() ? "server" : token;
}

bool is_subject_token(std::string_view text) {
    return !text.empty() && text.size() <= kMaxToken &&
           std::all_of(text.begin(), text.end(), may_stay);
}

std::string_view subject_type(std::string_view line) {
    const auto head = filter::read_head(line);
    return head && is_subject_token(head->type) ? head->type : "other";
}

std::string shown_url(std::string_view url) {
    const std::size_t scheme = url.find("://");
    const std::size_t host = scheme == std::string_view::npos ? 0 : scheme + 3;
    const std::size_t at = url.rfind('@');
    if (at == std::string_view::npos || at < host) {
        return std::string{url};
    }
    return std::string{url.substr(0, host)}.append(url.substr(at + 1));
}

} // namespace tw::bus
