#include "proxy/run/page_token.h"

#include "proxy/run/small_file.h"
#include "proxy/run/state_folder.h"

#include <algorithm>

#include <fmt/format.h>

namespace tw::run {

namespace {

constexpr std::size_t kFewest = 16;
constexpr std::size_t kMost = 256;
/// 128 bits: nobody guesses it.
constexpr std::size_t kRandomBytes = 16;
constexpr const char* kName = "http.token";

std::string_view first_line(std::string_view text) {
    text = text.substr(0, text.find('\n'));
    return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

std::string in_hex(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return text;
}

/// A word that a shell takes as it is.
bool is_plain(std::string_view path) {
    return std::all_of(path.begin(), path.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view{"/._-"}.find(static_cast<char>(c)) != std::string_view::npos;
    });
}

} // namespace

std::string PageToken::shown(bool to_people_only) const {
    if (to_people_only || file.empty()) {
        return value;
    }
    return is_plain(file) ? fmt::format("$(cat {})", file) : fmt::format("$(cat '{}')", file);
}

bool is_token(std::string_view text) noexcept {
    return text.size() >= kFewest && text.size() <= kMost &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || std::string_view{"-._~+/="}.find(
                                                  static_cast<char>(c)) != std::string_view::npos;
           });
}

tl::expected<PageToken, std::string> read_token(const std::filesystem::path& file) {
    constexpr std::size_t kMostBytes = 64U << 10U; // only the first line counts
    const auto text = read_small_file(file, kMostBytes);
    if (!text) {
        return tl::unexpected{fmt::format("{}: {}", file.string(), text.error().message())};
    }
    const std::string_view line = first_line(*text);
    if (!is_token(line)) {
        return tl::unexpected{
            fmt::format("{}: its first line is not a token: {} to {} letters, digits and -._~+/=",
                        file.string(), kFewest, kMost)};
    }
    return PageToken{.value = std::string{line}, .file = file.string()};
}

PageToken keep_token(const std::filesystem::path& folder) {
    const KeptFile kept =
        keep_file(folder, kName, in_hex(random_bytes(kRandomBytes)) + '\n',
                  [](std::string_view content) { return is_token(first_line(content)); });
    return {.value = std::string{first_line(kept.content)},
            .file = kept.problem.empty() ? (folder / kName).string() : ""};
}

} // namespace tw::run
