#include "proxy/capture/demo_file.h"

#include "proxy/capture/capture_file.h"
#include "proxy/capture/demo_header.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::capture {

bool DemoFile::is_demo(const std::string& path) {
    if (path == "-") {
        return false;
    }
    std::array<char, sink::demo::kMagic.size()> begin{};

    // A pipe would lose what is looked at.
    struct stat found {};

    if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) {
        return false;
    }
    std::ifstream file{path, std::ios::binary};
    file.read(begin.data(), begin.size());
    return file && looks_like_demo(std::as_bytes(std::span{begin}));
}

DemoFile::DemoFile(const std::string& path) {
    const auto fail = [&path] {
        throw CaptureError{path + ": " + std::generic_category().message(errno)};
    };
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        fail();
    }

    struct stat found {};

    void* begin = MAP_FAILED;
    if (::fstat(descriptor, &found) == 0 && found.st_size > 0) {
        begin = ::mmap(nullptr, static_cast<std::size_t>(found.st_size), PROT_READ, MAP_PRIVATE,
                       descriptor, 0);
    }
    const int error = errno;
    ::close(descriptor);
    if (begin == MAP_FAILED) {
        errno = error;
        fail();
    }
    begin_ = begin;
    size_ = static_cast<std::size_t>(found.st_size);
}

DemoFile::~DemoFile() {
    ::munmap(begin_, size_);
}

} // namespace tw::capture
