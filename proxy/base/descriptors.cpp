#include "proxy/base/descriptors.h"

#include <cerrno>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace tw::base {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail(const char* what) {
    throw std::system_error{errno, std::system_category(), what};
}

/// Raises the soft limit of file sizes to the hard limit while the object exists. Users set the
/// limit for recordings, but the kernel also applies it to shared memory.
class RaisedFileSizeLimit {
  public:
    RaisedFileSizeLimit() : known_{::getrlimit(RLIMIT_FSIZE, &before_) == 0} {
        set({.rlim_cur = before_.rlim_max, .rlim_max = before_.rlim_max});
    }

    ~RaisedFileSizeLimit() {
        const int error = errno;
        set(before_);
        errno = error;
    }

    RaisedFileSizeLimit(const RaisedFileSizeLimit&) = delete;
    RaisedFileSizeLimit& operator=(const RaisedFileSizeLimit&) = delete;

  private:
    void set(const rlimit& limit) const {
        if (known_) {
            std::ignore = ::setrlimit(RLIMIT_FSIZE, &limit);
        }
    }

    rlimit before_{};
    bool known_;
};

} // namespace

SharedMemory::SharedMemory(UniqueFd descriptor, std::size_t bytes)
    : descriptor_{std::move(descriptor)} {
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
    if (at == MAP_FAILED) {
        fail("map shared memory");
    }
    bytes_ = {static_cast<std::byte*>(at), bytes};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_{std::move(other.descriptor_)}, bytes_{std::exchange(other.bytes_, {})} {}

SharedMemory::~SharedMemory() {
    if (!bytes_.empty()) {
        ::munmap(bytes_.data(), bytes_.size());
    }
}

SharedMemory SharedMemory::create(std::size_t bytes) {
    const RaisedFileSizeLimit raised;
    UniqueFd descriptor{::memfd_create("twscope", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (!descriptor.valid() || ::ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0 ||
        ::fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) {
        fail(errno == EFBIG ? "make shared memory (the limit of file sizes counts here, too: raise "
                              "it, ulimit -f or LimitFSIZE=)"
                            : "make shared memory");
    }
    return {std::move(descriptor), bytes};
}

SharedMemory SharedMemory::attach(UniqueFd descriptor) {
    struct stat found {};

    if (::fstat(descriptor.get(), &found) != 0) {
        fail("look at shared memory");
    }
    const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
    if (seals < 0 || (seals & kSeals) != kSeals || found.st_size <= 0) {
        errno = EINVAL;
        fail("attach to shared memory");
    }
    return {std::move(descriptor), static_cast<std::size_t>(found.st_size)};
}

} // namespace tw::base
