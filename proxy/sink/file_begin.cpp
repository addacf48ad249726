#include "proxy/sink/file_begin.h"

#include "proxy/sink/byte_source.h"

#include <array>
#include <chrono>
#include <span>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace tw::sink {

namespace {

/// What a pipe holds by default: the first block of compressed data mostly fits.
constexpr std::size_t kCopied = std::size_t{64} << 10U;
/// How often a pipe is looked at that holds too little to tell, and how long each waits for more.
constexpr int kLooks = 50;
constexpr std::chrono::milliseconds kLook{20};

/// Of a descriptor, by a name under which it can be opened.
std::string unpacked_begin(int file, std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t held = 0;
    try {
        ByteSource source{fmt::format("/proc/self/fd/{}", file)};
        while (held < size) {
            const std::size_t read = source.read(std::span{bytes}.subspan(held));
            if (read == 0) {
                break;
            }
            held += read;
        }
    } catch (const std::system_error&) {
        held = 0; // as of a terminal
    }
    bytes.resize(held);
    return bytes;
}

/// What waits in a pipe or a socket goes into another pipe, and stays where it is. False: nothing can.
bool copy_ahead(int from, int to) {
    if (::tee(from, to, kCopied, 0) > 0) {
        return true;
    }
    constexpr std::size_t kFits = 4096; // into any pipe
    std::array<char, kFits> bytes{};
    const ssize_t peeked = ::recv(from, bytes.data(), bytes.size(), MSG_PEEK);
    return peeked > 0 && ::write(to, bytes.data(), static_cast<std::size_t>(peeked)) == peeked;
}

std::string waiting_begin(int file, std::size_t size) {
    std::array<int, 2> copy{};
    if (::pipe2(copy.data(), O_CLOEXEC) != 0) {
        return {};
    }
    const bool copied = copy_ahead(file, copy[1]);
    ::close(copy[1]);
    std::string bytes = copied ? unpacked_begin(copy[0], size) : std::string{};
    ::close(copy[0]);
    return bytes;
}

/// A pipe in a folder, which cannot be opened a second time once its writer is done: it would be waited for.
bool is_named_pipe(const std::string& path) {
    struct stat found {};

    struct statfs system {};

    return ::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode) &&
           ::statfs(path.c_str(), &system) == 0 && system.f_type != PIPEFS_MAGIC;
}

int open_to_look(const std::string& path) {
    if (path == "-") {
        return ::dup(STDIN_FILENO);
    }
    return is_named_pipe(path) ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

bool ended(int file) {
    pollfd state{.fd = file, .events = 0, .revents = 0};
    return ::poll(&state, 1, 0) != 0;
}

} // namespace

FileBegin::FileBegin(const std::string& path, std::size_t size) : file_{open_to_look(path)} {
    if (file_ < 0) {
        return;
    }
    if (const off_t at = ::lseek(file_, 0, SEEK_CUR); at >= 0) {
        // Opened anew, the file begins at its begin; of standard input some may have been read.
        bytes_ = at == 0 ? unpacked_begin(file_, size) : std::string{};
        return;
    }
    bytes_ = waiting_begin(file_, size);
    for (int look = 0; look < kLooks && !bytes_.empty() && bytes_.size() < size && !ended(file_);
         ++look) {
        std::this_thread::sleep_for(kLook);
        bytes_ = waiting_begin(file_, size);
    }
}

FileBegin::~FileBegin() {
    if (file_ >= 0) {
        ::close(file_);
    }
}

} // namespace tw::sink
