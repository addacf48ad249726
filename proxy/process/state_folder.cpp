#include "proxy/process/state_folder.h"

#include "proxy/base/descriptors.h"
#include "proxy/base/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::process {

namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

/// The maximum size of a file in the state folder, in bytes.
constexpr std::size_t kMaxFileBytes = 64U << 10U;

/// Creates a file atomically. If the file exists already, leaves it unchanged and returns true.
/// Returns false and sets errno on failure.
bool write_file(const std::filesystem::path& file, std::string_view content) {
    const std::string fresh = fmt::format("{}.{}", file.string(), ::getpid());
    const base::UniqueFd fd{
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode)};
    if (!fd.valid()) {
        return false;
    }
    const bool written =
        ::write(fd.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
        ::fsync(fd.get()) == 0 && (::link(fresh.c_str(), file.c_str()) == 0 || errno == EEXIST);
    const int error = errno;
    ::unlink(fresh.c_str());
    errno = error;
    return written;
}

constexpr std::size_t kMinTokenSize = 16;
constexpr std::size_t kMaxTokenSize = 256;
/// The size of a random token in bytes: 128 bits cannot be guessed.
constexpr std::size_t kRandomBytes = 16;
constexpr const char* kTokenFile = "http.token";

std::string_view first_line(std::string_view text) {
    text = text.substr(0, text.find('\n'));
    return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

/// Returns whether all characters of the text are letters, digits or characters in `others`.
bool has_only_alphanumerics_and(std::string_view others, std::string_view text) {
    return std::ranges::all_of(text, [others](unsigned char c) {
        return std::isalnum(c) != 0 || others.find(static_cast<char>(c)) != std::string_view::npos;
    });
}

/// Returns random bytes. Throws std::system_error if the system has no randomness.
std::string random_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        throw std::system_error{errno, std::generic_category(), "getrandom"};
    }
    return bytes;
}

/// The content of a file in the state folder. All runs of twscope share the folder.
struct StoredFile {
    std::string content;
    /// Why the content is not stored in a file, as "FILE: reason"; empty if it is stored.
    std::string problem;
};

/// Reads a file of at most kMaxFileBytes bytes. If the file is missing, creates it with the content
/// `fresh`. If the content is invalid, or the file cannot be read or created, returns `fresh`.
StoredFile read_or_create_file(const std::filesystem::path& folder, const std::string& name,
                               std::string fresh, bool (*is_valid)(std::string_view)) {
    const auto file = folder / name;
    auto content = base::read_small_file(file, kMaxFileBytes);
    if (!content && content.error() == std::errc::no_such_file_or_directory) {
        std::error_code ignored; // if this fails, write_file() fails, too
        if (folder.has_parent_path()) {
            std::filesystem::create_directories(folder.parent_path(), ignored);
        }
        ::mkdir(folder.c_str(), kFolderMode);
        if (write_file(file, fresh)) {
            content = base::read_small_file(file, kMaxFileBytes);
        } else {
            content = tl::unexpected{std::error_code{errno, std::generic_category()}};
        }
    }
    if (content && is_valid(*content)) {
        return {.content = *std::move(content), .problem = {}};
    }
    return {.content = std::move(fresh),
            .problem =
                fmt::format("{}: {}", file.string(),
                            content ? "its contents are invalid" : content.error().message())};
}

} // namespace

StoredKey read_or_create_key(const std::filesystem::path& folder, const std::string& name) {
    constexpr std::size_t kBytes = std::tuple_size_v<base::SipKey>;
    const StoredFile kept =
        read_or_create_file(folder, name, random_bytes(kBytes),
                            [](std::string_view content) { return content.size() >= kBytes; });
    StoredKey key;
    std::memcpy(key.key.data(), kept.content.data(), kBytes);
    if (!kept.problem.empty()) {
        key.warning = kept.problem + "; clients will have other addresses at the server in the "
                                     "next run, so bans do not outlast this one";
    }
    return key;
}

std::string PageToken::shell_text_for_log(bool is_read_by_people_only) const {
    if (is_read_by_people_only) {
        return value;
    }
    if (file.empty()) {
        return {};
    }
    // The path must be absolute, because a reader of the log may be in another folder.
    const std::string path = std::filesystem::absolute(file).lexically_normal().string();
    return has_only_alphanumerics_and("/._-", path) ? fmt::format("$(cat {})", path)
                                                    : fmt::format("$(cat '{}')", path);
}

bool is_valid_token(std::string_view text) noexcept {
    return text.size() >= kMinTokenSize && text.size() <= kMaxTokenSize &&
           has_only_alphanumerics_and("-._~+/=", text);
}

tl::expected<PageToken, std::string> read_token(const std::filesystem::path& file) {
    const auto text = base::read_small_file(file, kMaxFileBytes); // only the first line is used
    if (!text) {
        return tl::unexpected{fmt::format("{}: {}", file.string(), text.error().message())};
    }
    const std::string_view line = first_line(*text);
    if (!is_valid_token(line)) {
        return tl::unexpected{
            fmt::format("{}: its first line is not a token: {} to {} letters, digits and -._~+/=",
                        file.string(), kMinTokenSize, kMaxTokenSize)};
    }
    return PageToken{.value = std::string{line}, .file = file.string()};
}

PageToken read_or_create_token(const std::filesystem::path& folder) {
    const std::string random = random_bytes(kRandomBytes);
    const std::vector<unsigned char> bytes{random.begin(), random.end()};
    const StoredFile kept = read_or_create_file(
        folder, kTokenFile, fmt::format("{:02x}\n", fmt::join(bytes, "")),
        [](std::string_view content) { return is_valid_token(first_line(content)); });
    return {.value = std::string{first_line(kept.content)},
            .file = kept.problem.empty() ? (folder / kTokenFile).string() : ""};
}

} // namespace tw::process
