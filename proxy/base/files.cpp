#include "proxy/base/files.h"

#include "proxy/base/descriptors.h"

#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::base {

namespace {

constexpr std::chrono::milliseconds kReadTimeout{1000};
constexpr mode_t kReadableByAll = 0666; // the umask removes some of these permissions

std::error_code last_error() {
    return {errno, std::generic_category()};
}

std::error_code write_file(const std::string& path, std::span<const std::byte> bytes) {
    const UniqueFd file{
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kReadableByAll)};
    return file.valid() ? write_all(file.get(), bytes) : last_error();
}

struct flock whole_file_lock(short type) {
    struct flock whole {};

    whole.l_type = type;
    whole.l_whence = SEEK_SET;
    return whole;
}

} // namespace

tl::expected<std::string, std::error_code> read_small_file(const std::filesystem::path& path,
                                                           std::size_t max_bytes) {
    using Clock = std::chrono::steady_clock;
    const UniqueFd file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};

    struct stat found {};

    if (!file.valid() || ::fstat(file.get(), &found) != 0) {
        return tl::unexpected{last_error()};
    }
    if (S_ISDIR(found.st_mode)) {
        return tl::unexpected{std::make_error_code(std::errc::is_a_directory)};
    }
    const auto deadline = Clock::now() + kReadTimeout;
    std::string text(max_bytes + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t read = ::read(file.get(), text.data() + size, text.size() - size);
        if (read == 0 && (size != 0 || !S_ISFIFO(found.st_mode))) {
            text.resize(size);
            return text;
        }
        if (read > 0) {
            size += static_cast<std::size_t>(read);
            continue;
        }
        if (read < 0 && errno != EAGAIN && errno != EINTR) {
            return tl::unexpected{last_error()};
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        pollfd wanted{.fd = file.get(), .events = POLLIN, .revents = 0};
        if (read == 0 || left <= 0 || ::poll(&wanted, 1, static_cast<int>(left)) == 0) {
            return tl::unexpected{std::make_error_code(std::errc::no_message_available)};
        }
    }
    return tl::unexpected{std::make_error_code(std::errc::file_too_large)};
}

std::error_code write_all(int file, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) {
            return last_error();
        }
        bytes = bytes.subspan(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    return {};
}

std::error_code replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    auto aside = path;
    aside += fmt::format(".{}.tmp", ::getpid());
    std::error_code error = write_file(aside.string(), bytes);
    if (!error) {
        std::filesystem::rename(aside, path, error);
    }
    if (error) {
        std::error_code ignored;
        std::filesystem::remove(aside, ignored);
    }
    return error;
}

bool lock_file(int file) {
    auto lock = whole_file_lock(F_WRLCK);
    return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool is_locked(const std::filesystem::path& path) {
    const UniqueFd file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    auto lock = whole_file_lock(F_RDLCK);
    return file.valid() && ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

} // namespace tw::base
