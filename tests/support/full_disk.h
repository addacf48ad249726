#pragma once

#include <csignal>

#include <doctest/doctest.h>
#include <sys/resource.h>

namespace tw::test {

/// Limits the size of all files that this process writes, for the lifetime of the object.
class FullDisk {
  public:
    explicit FullDisk(rlim_t bytes = 0) {
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
        signal_ = std::signal(SIGXFSZ, SIG_IGN);
        const rlimit none{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
    }

    ~FullDisk() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, signal_);
    }

    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

  private:
    rlimit before_{};
    void (*signal_)(int) = SIG_DFL;
};

} // namespace tw::test
