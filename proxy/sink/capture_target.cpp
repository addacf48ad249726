#include "proxy/sink/capture_target.h"

#include "proxy/sink/capture_blocks.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::sink {

namespace {

constexpr mode_t kReadableByOwner = 0600; // it holds passwords

/// Whether anything but a pcapng file, or the beginning of one, is in there.
bool is_foreign(int file) {
    constexpr std::string_view kMagic{"\x0a\x0d\x0d\x0a"};
    std::array<char, kMagic.size()> first{};
    const ssize_t read = ::pread(file, first.data(), first.size(), 0);
    return read > 0 &&
           !kMagic.starts_with(std::string_view{first.data(), static_cast<std::size_t>(read)});
}

/// Its reader comes soon: who made the pipe for us starts both.
int open_pipe(const std::string& path) {
    constexpr std::chrono::milliseconds kPause{20};
    constexpr int kTries = 250;
    for (int tries = 0;; ++tries) {
        const int file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (file >= 0) {
            return file;
        }
        if (errno != ENXIO || tries == kTries) {
            throw std::system_error{errno, std::generic_category(), path};
        }
        std::this_thread::sleep_for(kPause);
    }
}

} // namespace

CaptureTarget::CaptureTarget(const std::string& path, Begin begin) : path_{path} {
    struct stat found {};

    const bool there = ::stat(path.c_str(), &found) == 0;
    pipe_ = there && S_ISFIFO(found.st_mode);
    if (pipe_) {
        descriptor_ = open_pipe(path);
        return;
    }
    if (there && !S_ISREG(found.st_mode)) {
        throw std::system_error{ESPIPE, std::generic_category(), path};
    }
    const int fresh = begin == Begin::empty ? O_TRUNC : 0;
    descriptor_ =
        ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | fresh, kReadableByOwner);
    if (descriptor_ < 0) {
        throw std::system_error{errno, std::generic_category(), path};
    }
    if (is_foreign(descriptor_)) {
        ::close(descriptor_);
        throw std::runtime_error{path + " holds something other than a pcapng capture, which would "
                                        "be spoilt; name another file, or move this one away"};
    }
}

CaptureTarget::~CaptureTarget() {
    ::close(descriptor_);
}

FileQueue::File CaptureTarget::give_to(FileQueue& files) {
    return files.adopt(::dup(descriptor_), path_);
}

void CaptureTarget::begin(FileQueue& files, FileQueue::File file) const {
    if (!pipe_) {
        std::ignore =
            ::ftruncate(descriptor_, static_cast<off_t>(whole_capture_bytes(descriptor_)));
    }
    std::ignore = files.append(file, CaptureBlocks::head());
}

} // namespace tw::sink
