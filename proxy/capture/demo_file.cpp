#include "proxy/capture/demo_file.h"

#include "proxy/capture/capture_file.h"
#include "proxy/capture/demo_header.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <system_error>

#include <sys/stat.h>

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
    const auto fail = [&path](const std::string& why) { throw CaptureError{path + ": " + why}; };
    std::FILE* const opened = std::fopen(path.c_str(), "rbe");
    if (opened == nullptr) {
        fail(std::generic_category().message(errno));
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{opened, &std::fclose};

    struct stat found {};

    if (::fstat(::fileno(opened), &found) != 0) {
        fail(std::generic_category().message(errno));
    }
    if (static_cast<std::uint64_t>(found.st_size) > kMaxBytes) {
        fail("larger than 1 GiB, the limit for demos");
    }
    bytes_.resize(static_cast<std::size_t>(found.st_size));
    bytes_.resize(std::fread(bytes_.data(), 1, bytes_.size(), opened));
    if (std::ferror(opened) != 0) {
        fail(std::generic_category().message(errno));
    }
    if (bytes_.empty()) {
        fail("is empty");
    }
}

} // namespace tw::capture
