#include "proxy/run/state_folder.h"

#include "proxy/relay/unique_fd.h"

#include <cerrno>
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

relay::SipKey random_key() {
    relay::SipKey key{};
    if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
        throw std::system_error{errno, std::generic_category(), "getrandom"};
    }
    return key;
}

/// Nothing, with errno, when it cannot be read; ENODATA when it is no key.
std::optional<relay::SipKey> read_key(const std::filesystem::path& file) {
    const relay::UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd.valid()) {
        return std::nullopt;
    }
    relay::SipKey key{};
    if (::read(fd.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size())) {
        errno = ENODATA;
        return std::nullopt;
    }
    return key;
}

/// Whole or not at all, and the one that was there first where two make one at the same time.
bool write_key(const std::filesystem::path& file, const relay::SipKey& key) {
    const std::string fresh = fmt::format("{}.{}", file.string(), ::getpid());
    const relay::UniqueFd fd{
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode)};
    if (!fd.valid()) {
        return false;
    }
    const bool written =
        ::write(fd.get(), key.data(), key.size()) == static_cast<ssize_t>(key.size()) &&
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

KeptKey keep_key(const std::filesystem::path& folder, const std::string& name) {
    const auto file = folder / name;
    if (const auto key = read_key(file)) {
        return {.key = *key, .warning = {}};
    }
    int error = errno;
    const relay::SipKey fresh = random_key();
    if (error == ENOENT) {
        make_folder(folder);
        if (write_key(file, fresh)) {
            if (const auto key = read_key(file)) {
                return {.key = *key, .warning = {}};
            }
        }
        error = errno;
    }
    const std::string why =
        error == ENODATA ? std::string{"it holds no key"} : std::generic_category().message(error);
    return {.key = fresh,
            .warning = fmt::format("{}: {}; clients have other addresses at the server in the next "
                                   "run, so that bans do not outlast this one",
                                   file.string(), why)};
}

} // namespace tw::run
