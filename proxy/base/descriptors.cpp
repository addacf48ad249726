#include "proxy/base/descriptors.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

namespace tw::base {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void throw_system_error(const char* what) {
    throw std::system_error{errno, std::system_category(), what};
}

/// Raises the soft limit of file sizes to the hard limit until the destructor runs. Users set the
/// limit for recordings, but the kernel also applies it to shared memory.
class RaisedFileSizeLimit {
  public:
    RaisedFileSizeLimit() : is_known_{::getrlimit(RLIMIT_FSIZE, &before_) == 0} {
        set_limit({.rlim_cur = before_.rlim_max, .rlim_max = before_.rlim_max});
    }

    ~RaisedFileSizeLimit() {
        const int error = errno;
        set_limit(before_);
        errno = error;
    }

    RaisedFileSizeLimit(const RaisedFileSizeLimit&) = delete;
    RaisedFileSizeLimit& operator=(const RaisedFileSizeLimit&) = delete;

  private:
    void set_limit(const rlimit& limit) const {
        if (is_known_) {
            std::ignore = ::setrlimit(RLIMIT_FSIZE, &limit);
        }
    }

    rlimit before_{};
    bool is_known_; ///< true if before_ contains the limit
};

/// A buffer for the control message (cmsghdr) that carries the descriptors of a packet.
union DescriptorControl {
    std::array<char, CMSG_SPACE(kMaxPacketDescriptors * sizeof(int))> bytes;
    cmsghdr header;
};

std::vector<UniqueFd> descriptors_in(msghdr& header) {
    std::vector<UniqueFd> descriptors;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(c) + i * sizeof descriptor, sizeof descriptor);
            descriptors.emplace_back(descriptor);
        }
    }
    return descriptors;
}

} // namespace

UniqueFd take_descriptor(int descriptor, const char* what) {
    if (descriptor < 0) {
        throw_system_error(what);
    }
    return UniqueFd{descriptor};
}

bool send_packet(int socket, std::uint8_t first_byte, std::span<const std::byte> bytes,
                 std::span<const int> descriptors) noexcept {
    // sendmsg() does not write to these bytes.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
    std::array<iovec, 2> parts{
        {{&first_byte, 1}, {const_cast<std::byte*>(bytes.data()), bytes.size()}}};
    DescriptorControl control{};
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    if (!descriptors.empty()) {
        header.msg_control = control.bytes.data();
        header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
    }
    return ::sendmsg(socket, &header, MSG_NOSIGNAL) >= 0;
}

std::optional<ReceivedPacket> receive_packet(int socket, std::span<std::byte> buffer) {
    ReceivedPacket packet;
    std::array<iovec, 2> parts{{{&packet.first_byte, 1}, {buffer.data(), buffer.size()}}};
    DescriptorControl control{};
    msghdr header{};
    ssize_t received = 0;
    // If the peer closed its end before it had read all packets, recvmsg() fails once with
    // ECONNRESET. The next call delivers the packets that the peer sent.
    bool reset = false;
    do {
        header = {};
        header.msg_iov = parts.data();
        header.msg_iovlen = parts.size();
        header.msg_control = control.bytes.data();
        header.msg_controllen = control.bytes.size();
        received = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (received < 0 &&
             (errno == EINTR || (errno == ECONNRESET && !std::exchange(reset, true))));
    if (received <= 0) {
        errno = received == 0 ? EPIPE : errno;
        return std::nullopt;
    }
    packet.size = static_cast<std::size_t>(received) - 1;
    packet.descriptors = descriptors_in(header);
    packet.truncated = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    return packet;
}

SharedMemory::SharedMemory(UniqueFd descriptor, std::size_t bytes)
    : descriptor_{std::move(descriptor)} {
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
    if (at == MAP_FAILED) {
        throw_system_error("map shared memory");
    }
    bytes_ = {static_cast<std::byte*>(at), bytes};
}

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
        throw_system_error(
            errno == EFBIG ? "make shared memory (the limit of file sizes counts here, too: raise "
                             "it, ulimit -f or LimitFSIZE=)"
                           : "make shared memory");
    }
    return {std::move(descriptor), bytes};
}

SharedMemory SharedMemory::attach(UniqueFd descriptor) {
    struct stat found {};

    if (::fstat(descriptor.get(), &found) != 0) {
        throw_system_error("look at shared memory");
    }
    const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
    if (seals < 0 || (seals & kSeals) != kSeals || found.st_size <= 0) {
        errno = EINVAL;
        throw_system_error("attach to shared memory");
    }
    return {std::move(descriptor), static_cast<std::size_t>(found.st_size)};
}

} // namespace tw::base
