#include "proxy/sink/prompt_stream.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

#include <poll.h>
#include <unistd.h>

namespace tw::sink {

PromptStream::PromptStream(int descriptor)
    : descriptor_{descriptor}, terminal_{::isatty(descriptor) == 1} {
    constexpr cookie_io_functions_t kWriteOnly{
        .read = nullptr,
        .write = [](void* cookie, const char* text, std::size_t size) -> ssize_t {
            static_cast<PromptStream*>(cookie)->write(text, size);
            return static_cast<ssize_t>(size); // what was dropped is counted, and no error
        },
        .seek = nullptr,
        .close = nullptr};
    file_ = ::fopencookie(this, "w", kWriteOnly);
    if (file_ == nullptr) {
        throw std::system_error{errno, std::system_category(), "open a stream"};
    }
    std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
}

PromptStream::~PromptStream() {
    std::fclose(file_);
}

void PromptStream::write(const char* text, std::size_t size) {
    while (size != 0) {
        pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
        if (::poll(&room, 1, static_cast<int>(patience_ms_)) <= 0 ||
            (room.revents & POLLOUT) == 0) {
            break;
        }
        // A pipe that has room has it for so many bytes at least.
        const ssize_t written = ::write(descriptor_, text, std::min<std::size_t>(size, PIPE_BUF));
        if (written < 0 && errno != EINTR) {
            break;
        }
        text += std::max<ssize_t>(written, 0);
        size -= static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }
    dropped_bytes_ += size;
}

} // namespace tw::sink
