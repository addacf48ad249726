#include "proxy/sink/file_output.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <system_error>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::sink {

namespace {

constexpr std::chrono::milliseconds kRoomWait{100};
/// How long a reader may take nothing once there is a hurry.
constexpr int kLooksInHurry = 8;

constexpr mode_t kOutputMode = 0644;

/// Never waits: to open a pipe that nobody reads fails with ENXIO.
int open_at_once(const std::string& path, int how) {
    const int file = ::open(
        path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | how, kOutputMode);
    if (file >= 0) {
        std::ignore = ::fcntl(file, F_SETFL, O_APPEND);
    }
    return file;
}

int open_for(const std::string& path, std::chrono::milliseconds reader_time) {
    constexpr std::chrono::milliseconds kPause{20};
    if (path == "-") {
        return ::dup(STDOUT_FILENO);
    }
    const auto deadline = std::chrono::steady_clock::now() + reader_time;
    while (true) {
        const int file = open_at_once(path, O_TRUNC);

        struct stat found {};

        if (file >= 0 || errno != ENXIO || ::stat(path.c_str(), &found) != 0 ||
            !S_ISFIFO(found.st_mode)) {
            return file;
        }
        if (std::chrono::steady_clock::now() >= deadline) {
            errno = ETIMEDOUT;
            return -1;
        }
        std::this_thread::sleep_for(kPause);
    }
}

} // namespace

FileOutput::FileOutput(const std::string& path, const Units& units,
                       std::chrono::milliseconds reader_time)
    : path_{path}, units_{&units}, descriptor_{open_for(path, reader_time)} {
    if (descriptor_ < 0) {
        throw std::system_error{errno, std::generic_category(), path};
    }
    learn_kind();
    put(units_->head());
}

FileOutput::~FileOutput() {
    ::close(descriptor_);
    go_on_in(-1);
}

int FileOutput::open_again(const std::string& path) {
    return open_at_once(path, 0);
}

void FileOutput::go_on_in(int descriptor) {
    const int other = next_.exchange(descriptor);
    if (other >= 0) {
        ::close(other);
    }
}

void FileOutput::change_file() {
    const int next = next_.exchange(-1);
    ::close(descriptor_);
    descriptor_ = next;
    learn_kind();
    error_ = 0;
}

void FileOutput::learn_kind() {
    struct stat found {};

    const bool disk = ::fstat(descriptor_, &found) == 0 && S_ISREG(found.st_mode);
    const bool device = S_ISCHR(found.st_mode) && ::isatty(descriptor_) == 0; // as /dev/null
    waits_ = !disk && !device;
    const int pipe = ::fcntl(descriptor_, F_GETPIPE_SZ);
    capacity_ = std::max<std::size_t>(PIPE_BUF, static_cast<std::size_t>(std::max(pipe, 0)));
}

/// False: there is a hurry, and it takes nothing.
bool FileOutput::wait_for_reader() const {
    for (int looks = 0; !hurried_ || looks < kLooksInHurry; ++looks) {
        pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
        if (::poll(&room, 1, static_cast<int>(kRoomWait.count())) > 0) {
            return true; // also when it is gone, which the write will say
        }
    }
    return false;
}

/// A pipe that has room has it for PIPE_BUF bytes at least, and one that nothing waits in has all its
/// room: more would wait for the reader.
std::size_t FileOutput::room() const {
    int unread = 0;
    const bool empty =
        capacity_ > PIPE_BUF && ::ioctl(descriptor_, FIONREAD, &unread) == 0 && unread == 0;
    return empty ? capacity_ : PIPE_BUF;
}

void FileOutput::write(std::string_view block) {
    if (next_ >= 0) {
        const std::size_t rest = whole_ ? 0 : units_->front(block, 1);
        put(block.substr(0, rest));
        block.remove_prefix(rest);
        if (whole_) {
            change_file();
            put(units_->head());
        }
    }
    put(block);
}

void FileOutput::put(std::string_view block) {
    whole_ = block.empty() ? whole_ : units_->whole(block) == block.size();
    while (!block.empty() && !failed()) {
        if (waits_ && !wait_for_reader()) {
            error_ = ETIMEDOUT;
            break;
        }
        const std::size_t size = waits_ ? std::min(block.size(), room()) : block.size();
        const ssize_t written = ::write(descriptor_, block.data(), size);
        if (written >= 0) {
            block.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR && errno != EAGAIN) {
            error_ = errno;
        }
    }
    if (failed()) {
        lost_ += units_->count(block);
    }
}

} // namespace tw::sink
