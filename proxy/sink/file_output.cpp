#include "proxy/sink/file_output.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace tw::sink {

FileOutput::FileOutput(const std::string& path) : path_{path} {
    constexpr mode_t kReadableByAll = 0644;
    descriptor_ = path == "-" ? ::dup(STDOUT_FILENO)
                              : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                                       kReadableByAll);
    if (descriptor_ < 0) {
        throw std::system_error{errno, std::generic_category(), path};
    }
}

FileOutput::~FileOutput() {
    ::close(descriptor_);
}

void FileOutput::write(std::string_view block) {
    while (!block.empty() && !failed()) {
        const ssize_t written = ::write(descriptor_, block.data(), block.size());
        if (written >= 0) {
            block.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR) {
            error_ = errno;
        }
    }
    if (failed()) {
        lost_lines_ += lines_in(block);
    }
}

} // namespace tw::sink
