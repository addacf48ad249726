#pragma once

#include <utility>

#include <unistd.h>

namespace tw::relay {

/// Owns a file descriptor.
class UniqueFd {
  public:
    UniqueFd() = default;

    explicit UniqueFd(int fd) noexcept : fd_{fd} {}

    UniqueFd(UniqueFd&& other) noexcept : fd_{std::exchange(other.fd_, kNone)} {}

    UniqueFd& operator=(UniqueFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }

    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;

    ~UniqueFd() {
        if (fd_ != kNone) {
            ::close(fd_);
        }
    }

    [[nodiscard]] int get() const noexcept { return fd_; }

    /// Gives it away.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, kNone); }

    [[nodiscard]] bool valid() const noexcept { return fd_ != kNone; }

  private:
    static constexpr int kNone = -1;
    int fd_ = kNone;
};

} // namespace tw::relay
