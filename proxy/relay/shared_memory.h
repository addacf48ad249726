#pragma once

#include "proxy/relay/unique_fd.h"

#include <cstddef>
#include <span>

namespace tw::relay {

/// Memory that two processes see. Its size is sealed: whoever else has the descriptor can change
/// what is in it, but cannot take a page away under the other's hands.
class SharedMemory {
  public:
    /// Zeroed; pages that nobody touches cost nothing. Errors: throws std::system_error.
    [[nodiscard]] static SharedMemory create(std::size_t bytes);

    /// What another process created. Errors: throws std::system_error, also for what is not such
    /// memory.
    [[nodiscard]] static SharedMemory attach(UniqueFd descriptor);

    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&&) = delete;
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    ~SharedMemory();

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

  private:
    SharedMemory(UniqueFd descriptor, std::size_t bytes);

    UniqueFd descriptor_;
    std::span<std::byte> bytes_;
};

} // namespace tw::relay
