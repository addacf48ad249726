#include "proxy/process/takeover_link.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace tw::process {

namespace {

constexpr mode_t kSocketMode = 0600;
constexpr int kBacklog = 8;
/// The longest message from a new relay to a running relay. Such messages have no descriptors.
constexpr std::size_t kMaxRequestBytes = 1024;
/// A flag in a packet's first byte, which also contains the kind. It means that further packets of
/// the message follow.
constexpr std::uint8_t kMorePacketsFlag = 0x80;

void wait_for_events(int socket, short events, TakeoverLink::Time deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - base::Clock::now());
    pollfd ready{.fd = socket, .events = events, .revents = 0};
    std::ignore = ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
}

base::UniqueFd unix_socket() {
    return base::UniqueFd{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

/// A socket address for a path. A path that is too long is replaced by a path through the folder's
/// descriptor, which must stay open.
struct FileAddress {
    sockaddr_un name{};
    base::UniqueFd folder;

    explicit FileAddress(const std::filesystem::path& file) {
        std::string path = file.string();
        if (path.size() >= sizeof name.sun_path) {
            folder = base::UniqueFd{::open(file.parent_path().c_str(), O_PATH | O_CLOEXEC)};
            path = "/proc/self/fd/" + std::to_string(folder.get()) + '/' + file.filename().string();
        }
        name.sun_family = AF_UNIX;
        path.copy(name.sun_path, sizeof name.sun_path - 1);
    }

    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

bool bind_to_file(int socket, const FileAddress& address) {
    // The socket's mode becomes the file's mode.
    return ::fchmod(socket, kSocketMode) == 0 &&
           ::bind(socket, address.get(), sizeof address.name) == 0;
}

} // namespace

bool TakeoverLink::send_packet(std::uint8_t first_byte, std::span<const std::byte> bytes,
                               std::span<const int> descriptors, Time deadline) const {
    while (!base::send_packet(socket_.get(), first_byte, bytes, descriptors)) {
        // ETOOMANYREFS: the receiver must first receive descriptors that were sent before.
        const bool full = errno == EAGAIN || errno == EWOULDBLOCK || errno == ETOOMANYREFS;
        if ((!full && errno != EINTR) || base::Clock::now() >= deadline) {
            return false;
        }
        wait_for_events(socket_.get(), POLLOUT, deadline);
    }
    return true;
}

bool TakeoverLink::send(TakeoverMessage kind, std::span<const std::byte> body,
                        std::span<const int> descriptors, Time deadline) const {
    bool sent = true;
    bool more = true;
    while (sent && more) {
        const auto bytes = body.first(std::min(body.size(), kMaxPacketBytes));
        const auto some =
            descriptors.first(std::min(descriptors.size(), base::kMaxPacketDescriptors));
        body = body.subspan(bytes.size());
        descriptors = descriptors.subspan(some.size());
        more = !body.empty() || !descriptors.empty();
        const unsigned first_byte = static_cast<unsigned>(kind) | (more ? kMorePacketsFlag : 0U);
        sent = send_packet(static_cast<std::uint8_t>(first_byte), bytes, some, deadline);
    }
    return sent;
}

/// Adds a packet to the message that is arriving. Returns whether the message is complete.
bool TakeoverLink::add_packet(base::ReceivedPacket& packet, std::span<const std::byte> bytes) {
    const auto kind = static_cast<TakeoverMessage>(packet.first_byte & ~unsigned{kMorePacketsFlag});
    const bool continues = incomplete_.kind == TakeoverMessage{} || incomplete_.kind == kind;
    incomplete_.kind = kind;
    incomplete_.body.insert(incomplete_.body.end(), bytes.begin(), bytes.end());
    std::ranges::move(packet.descriptors, std::back_inserter(incomplete_.descriptors));
    const std::size_t length =
        incomplete_.body.size() + incomplete_.descriptors.size() * sizeof(int);
    closed_ = packet.truncated || !continues || length > max_message_;
    return !closed_ && (packet.first_byte & kMorePacketsFlag) == 0;
}

std::optional<TakeoverLink::Message> TakeoverLink::receive(Time deadline) {
    std::vector<std::byte> room(kMaxPacketBytes);
    while (!closed_) {
        auto packet = base::receive_packet(socket_.get(), room);
        const int error = errno;
        if (packet && add_packet(*packet, std::span{room}.first(packet->size))) {
            return std::exchange(incomplete_, {});
        }
        closed_ = closed_ || (!packet && error != EAGAIN);
        if (closed_ || base::Clock::now() >= deadline) {
            break;
        }
        if (!packet) {
            wait_for_events(socket_.get(), POLLIN, deadline);
        }
    }
    if (closed_) {
        incomplete_ = {};
    }
    return std::nullopt;
}

bool TakeoverLink::is_trusted(pid_t excluded) const noexcept {
    ucred peer{};
    socklen_t length = sizeof peer;
    return ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == ::geteuid() || peer.uid == 0) && (excluded == 0 || peer.pid != excluded);
}

std::filesystem::path TakeoverSocket::path_of(const std::filesystem::path& folder,
                                              const std::string& listen) {
    return folder / ("takeover-" + listen);
}

std::optional<TakeoverSocket> TakeoverSocket::open(const std::filesystem::path& file) {
    const FileAddress address{file};
    base::UniqueFd socket = unix_socket();
    bool bound = socket.valid() && bind_to_file(socket.get(), address);
    if (!bound && errno == EADDRINUSE) {
        if (connect(file)) {
            errno = EADDRINUSE;
            return std::nullopt;
        }
        bound = errno == ECONNREFUSED && ::unlink(file.c_str()) == 0 &&
                bind_to_file(socket.get(), address);
    }
    if (!bound || ::listen(socket.get(), kBacklog) != 0) {
        return std::nullopt;
    }
    return TakeoverSocket{file, std::move(socket)};
}

std::optional<TakeoverLink> TakeoverSocket::connect(const std::filesystem::path& file) {
    const FileAddress address{file};
    base::UniqueFd socket = unix_socket();
    if (!socket.valid() || ::connect(socket.get(), address.get(), sizeof address.name) != 0) {
        return std::nullopt;
    }
    return TakeoverLink{std::move(socket)};
}

TakeoverSocket::~TakeoverSocket() {
    if (socket_.valid() && !file_.empty()) {
        ::unlink(file_.c_str());
    }
}

std::optional<TakeoverLink> TakeoverSocket::accept() const {
    base::UniqueFd socket{::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (!socket.valid()) {
        return std::nullopt;
    }
    return TakeoverLink{std::move(socket), kMaxRequestBytes};
}

} // namespace tw::process
