#include "proxy/bus/subjects.h"

#include "proxy/filter/line_record.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>
#include <sys/random.h>

namespace tw::bus {

std::string make_run_id() {
    std::array<std::uint16_t, 5> random{};
    if (::getrandom(random.data(), sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
        throw std::system_error{errno, std::generic_category(), "getrandom"};
    }
    const auto now =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                       std::chrono::system_clock::now().time_since_epoch())
                                       .count());
    constexpr unsigned kVersion = 0x7000;
    constexpr unsigned kVariant = 0x8000;
    return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:04x}{:04x}", now >> 16U & 0xffffffffU,
                       now & 0xffffU, kVersion | (random[0] & 0xfffU),
                       kVariant | (random[1] & 0x3fffU), random[2], random[3], random[4]);
}

namespace {

/// The first character of make_all_servers_name(). Published subjects never contain it, because it
/// is a wildcard.
constexpr std::string_view kAllServersPrefix = "*";

bool is_token_char(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '-' || character == '_';
}

} // namespace

std::string make_subject_token(std::string_view text) {
    std::string token{text.substr(0, kMaxSubjectTokenBytes)};
    std::ranges::replace_if(
        token, [](char character) { return !is_token_char(character); }, '_');
    return token.empty() ? "server" : token;
}

bool is_subject_token(std::string_view text) {
    return !text.empty() && text.size() <= kMaxSubjectTokenBytes &&
           std::ranges::all_of(text, is_token_char);
}

std::string_view subject_type_of_line(std::string_view line) {
    const auto head = filter::read_line_head(line);
    return head && is_subject_token(head->type) ? head->type : "other";
}

std::string make_all_servers_name(std::string_view default_server) {
    return std::string{kAllServersPrefix}.append(default_server);
}

bool is_server_parameter(std::string_view text) {
    return is_subject_token(
        text.starts_with(kAllServersPrefix) ? text.substr(kAllServersPrefix.size()) : text);
}

std::string_view subject_server_of_line(std::string_view server, std::string_view line) {
    if (!server.starts_with(kAllServersPrefix)) {
        return server;
    }
    // A line names its server near the beginning, before any text from a peer.
    constexpr std::size_t kHead = 256;
    constexpr std::string_view kKey = R"(,"server_name":")";
    const std::size_t at = line.substr(0, kHead).find(kKey);
    const std::string_view rest =
        at == std::string_view::npos ? std::string_view{} : line.substr(at + kKey.size());
    const std::string_view name = rest.substr(0, rest.find('"'));
    return is_subject_token(name) ? name : server.substr(kAllServersPrefix.size());
}

std::string_view server_of_subject(std::string_view subject) {
    const auto first = subject.find('.');
    if (first == std::string_view::npos) {
        return {};
    }
    const std::string_view rest = subject.substr(first + 1);
    return rest.substr(0, rest.find('.'));
}

std::string_view server_part_to_subscribe(std::string_view server) {
    return server.starts_with(kAllServersPrefix) ? kAllServersPrefix : server;
}

std::string url_without_password(std::string_view url) {
    const std::size_t scheme = url.find("://");
    const std::size_t host = scheme == std::string_view::npos ? 0 : scheme + 3;
    const std::size_t at = url.rfind('@');
    if (at == std::string_view::npos || at < host) {
        return std::string{url};
    }
    return std::string{url.substr(0, host)}.append(url.substr(at + 1));
}

} // namespace tw::bus
