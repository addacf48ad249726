#include "proxy/run/state_folder.h"

#include "proxy/relay/unique_fd.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::run {

namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

/// Longest file that is kept.
constexpr std::size_t kMaxBytes = 512;

/// Nothing, with errno, when it cannot be read; ENODATA when it is not what it should be.
std::optional<std::string> read_file(const std::filesystem::path& file,
                                     bool (*is_good)(std::string_view)) {
    const relay::UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd.valid()) {
        return std::nullopt;
    }
    std::string content(kMaxBytes, '\0');
    const ssize_t size = ::read(fd.get(), content.data(), content.size());
    if (size < 0) {
        return std::nullopt;
    }
    content.resize(static_cast<std::size_t>(size));
    if (!is_good(content)) {
        errno = ENODATA;
        return std::nullopt;
    }
    return content;
}

/// Whole or not at all, and the one that was there first where two make one at the same time.
bool write_file(const std::filesystem::path& file, std::string_view content) {
    const std::string fresh = fmt::format("{}.{}", file.string(), ::getpid());
    const relay::UniqueFd fd{
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

void make_folder(const std::filesystem::path& folder) {
    std::error_code ignored; // opening the file says what is wrong
    if (folder.has_parent_path()) {
        std::filesystem::create_directories(folder.parent_path(), ignored);
    }
    ::mkdir(folder.c_str(), kFolderMode);
}

} // namespace

std::string random_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        throw std::system_error{errno, std::generic_category(), "getrandom"};
    }
    return bytes;
}

KeptFile keep_file(const std::filesystem::path& folder, const std::string& name, std::string fresh,
                   bool (*is_good)(std::string_view)) {
    const auto file = folder / name;
    if (auto content = read_file(file, is_good)) {
        return {.content = *std::move(content), .problem = {}};
    }
    int error = errno;
    if (error == ENOENT) {
        make_folder(folder);
        if (write_file(file, fresh)) {
            if (auto content = read_file(file, is_good)) {
                return {.content = *std::move(content), .problem = {}};
            }
        }
        error = errno;
    }
    return {.content = std::move(fresh),
            .problem = fmt::format("{}: {}", file.string(),
                                   error == ENODATA ? std::string{"its contents are invalid"}
                                                    : std::generic_category().message(error))};
}

KeptKey keep_key(const std::filesystem::path& folder, const std::string& name) {
    constexpr std::size_t kBytes = std::tuple_size_v<relay::SipKey>;
    const KeptFile kept =
        keep_file(folder, name, random_bytes(kBytes),
                  [](std::string_view content) { return content.size() >= kBytes; });
    KeptKey key;
    std::memcpy(key.key.data(), kept.content.data(), kBytes);
    if (!kept.problem.empty()) {
        key.warning = kept.problem + "; clients will have other addresses at the server in the "
                                     "next run, so bans do not outlast this one";
    }
    return key;
}

} // namespace tw::run
