#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <unistd.h>

namespace tw::base {

/// Owns a file descriptor and closes it when it is destroyed.
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

    /// Returns the descriptor. From now on the caller must close it.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, kNone); }

    [[nodiscard]] bool valid() const noexcept { return fd_ != kNone; }

  private:
    static constexpr int kNone = -1;
    int fd_ = kNone;
};

/// Takes ownership of a descriptor that a system call returned. Errors: if the descriptor is
/// negative, throws std::system_error with errno and the text `what`.
[[nodiscard]] UniqueFd take_descriptor(int descriptor, const char* what);

/// The maximum number of descriptors that one packet carries. Linux allows 253.
inline constexpr std::size_t kMaxPacketDescriptors = 128;

/// Sends a packet on a SOCK_SEQPACKET socket: a first byte, further bytes, and duplicates of
/// descriptors. Returns false and sets errno on failure.
[[nodiscard]] bool send_packet(int socket, std::uint8_t first_byte,
                               std::span<const std::byte> bytes,
                               std::span<const int> descriptors) noexcept;

struct ReceivedPacket {
    std::uint8_t first_byte = 0;
    std::size_t size = 0; ///< number of bytes after the first byte
    std::vector<UniqueFd> descriptors{};
    bool truncated = false; ///< bytes or descriptors are missing
};

/// Receives a packet; its bytes after the first are written to `buffer`. Returns nullopt and sets
/// errno on failure: EAGAIN if no packet has arrived, EPIPE if the peer is gone.
[[nodiscard]] std::optional<ReceivedPacket> receive_packet(int socket, std::span<std::byte> buffer);

/// Memory that two processes share. Its size is sealed: the other process can change the contents,
/// but cannot truncate the memory's file, which would crash this process.
class SharedMemory {
  public:
    /// Creates zeroed memory. A page takes no memory until it is used. Errors: throws
    /// std::system_error.
    [[nodiscard]] static SharedMemory create(std::size_t bytes);

    /// Maps memory that another process created with create(). Errors: throws std::system_error,
    /// for example if the descriptor does not refer to such memory.
    [[nodiscard]] static SharedMemory attach(UniqueFd descriptor);

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

} // namespace tw::base
