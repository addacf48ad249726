#include "proxy/process/handover.h"

#include "proxy/base/archive.h"
#include "proxy/channel/shared_block.h"
#include "proxy/relay/upstream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace tw::process {

namespace {

constexpr mode_t kSocketMode = 0600;
constexpr int kBacklog = 8;

/// Waits for events; returns false at the deadline.
bool wait_for(int socket, short events, TakeoverLink::Time deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - base::Clock::now());
    pollfd ready{.fd = socket, .events = events, .revents = 0};
    return ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

base::UniqueFd unix_socket() {
    return base::UniqueFd{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

/// A socket address for a path. A path that is too long is replaced by one through the folder's
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

bool bind_to(int socket, const FileAddress& address) {
    // The socket's mode becomes the file's mode.
    return ::fchmod(socket, kSocketMode) == 0 &&
           ::bind(socket, address.get(), sizeof address.name) == 0;
}

bool is_listening_unix_socket(int socket) {
    int domain = 0;
    int listening = 0;
    socklen_t length = sizeof domain;
    return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
           ::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 &&
           domain == AF_UNIX && listening != 0;
}

/// The credentials of the peer's process.
std::optional<ucred> peer_of(int socket) {
    ucred peer{};
    socklen_t length = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? std::optional{peer}
                                                                              : std::nullopt;
}

/// Room for the descriptors of a message.
union Control {
    std::array<char, CMSG_SPACE(TakeoverLink::kMaxDescriptors * sizeof(int))> bytes;
    cmsghdr header;
};

std::vector<base::UniqueFd> descriptors_in(msghdr& header) {
    std::vector<base::UniqueFd> descriptors;
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

bool TakeoverLink::send(TakeoverMessage word, std::span<const std::byte> body,
                        std::span<const int> descriptors, Time deadline) const {
    if (body.size() >= kMaxBytes || descriptors.size() > kMaxDescriptors) {
        return false;
    }
    // The system only reads what it sends.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
    std::array<iovec, 2> parts{{{&word, 1}, {const_cast<std::byte*>(body.data()), body.size()}}};
    Control control{};
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
    while (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) < 0) {
        // ETOOMANYREFS: the receiver must first take some descriptors.
        const bool full = errno == EAGAIN || errno == EWOULDBLOCK || errno == ETOOMANYREFS;
        if (errno != EINTR && (!full || !wait_for(socket_.get(), POLLOUT, deadline) ||
                               base::Clock::now() >= deadline)) {
            return false;
        }
    }
    return true;
}

std::optional<TakeoverLink::Message> TakeoverLink::receive_now() {
    TakeoverMessage word{};
    Message message;
    message.body.resize(kMaxBytes);
    std::array<iovec, 2> parts{{{&word, 1}, {message.body.data(), message.body.size()}}};
    Control control{};
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    // The reset of a peer that closed early is reported once, before its earlier messages.
    ssize_t received = 0;
    bool reset = false;
    do {
        received = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    } while (received < 0 &&
             (errno == EINTR || (errno == ECONNRESET && !std::exchange(reset, true))));
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return std::nullopt;
    }
    message.descriptors = received < 0 ? std::vector<base::UniqueFd>{} : descriptors_in(header);
    closed_ = received <= 0 || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    if (closed_) {
        return std::nullopt;
    }
    message.word = word;
    message.body.resize(static_cast<std::size_t>(received) - 1);
    return message;
}

std::optional<TakeoverLink::Message> TakeoverLink::receive(Time deadline) {
    while (!closed_) {
        if (auto message = receive_now()) {
            return message;
        }
        if (closed_ || !wait_for(socket_.get(), POLLIN, deadline)) {
            break;
        }
    }
    return std::nullopt;
}

bool TakeoverLink::is_trusted() const noexcept {
    const auto peer = peer_of(socket_.get());
    return peer && (peer->uid == ::geteuid() || peer->uid == 0);
}

bool TakeoverLink::is_of(pid_t process) const noexcept {
    const auto peer = peer_of(socket_.get());
    return peer && peer->pid == process;
}

std::filesystem::path TakeoverSocket::path_of(const std::filesystem::path& folder,
                                              const std::string& listen) {
    return folder / ("takeover-" + listen);
}

std::optional<TakeoverSocket> TakeoverSocket::open(const std::filesystem::path& file) {
    const FileAddress address{file};
    base::UniqueFd socket = unix_socket();
    bool bound = socket.valid() && bind_to(socket.get(), address);
    if (!bound && errno == EADDRINUSE) {
        if (ask(file)) {
            errno = EADDRINUSE;
            return std::nullopt;
        }
        bound =
            errno == ECONNREFUSED && ::unlink(file.c_str()) == 0 && bind_to(socket.get(), address);
    }
    if (!bound || ::listen(socket.get(), kBacklog) != 0) {
        return std::nullopt;
    }
    return TakeoverSocket{file, std::move(socket)};
}

std::optional<TakeoverSocket> TakeoverSocket::take_over(const std::filesystem::path& file,
                                                        base::UniqueFd socket) {
    if (!is_listening_unix_socket(socket.get())) {
        return std::nullopt;
    }
    return TakeoverSocket{file, std::move(socket)};
}

std::optional<TakeoverLink> TakeoverSocket::ask(const std::filesystem::path& file) {
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
    return TakeoverLink{std::move(socket)};
}

namespace {

using base::ArchiveReader;
using base::ArchiveWriter;
using relay::HandoverError;

/// Describes a message for both reading and writing.
template <typename Message, typename State>
concept Said = std::same_as<std::remove_const_t<Message>, State>;

void archive(auto& archive, Said<TakeoverOffer> auto& offer) {
    archive.number(offer.network);
    archive.number(offer.servers);
    archive.number(offer.observer);
}

void archive(auto& archive, Said<TakeoverServer> auto& server) {
    archive.number(server.number);
    archive.bytes(server.name, channel::ServerFacts::kMaxName);
    archive.list(server.listen, relay::kMaxListeners,
                 [](auto& inner, auto& endpoint) { relay::archive_endpoint(inner, endpoint); });
    archive.number(server.listening_sockets);
    relay::archive_endpoint(archive, server.server);
    archive.bytes(server.host_name, TakeoverServer::kMaxHostName);
    archive.list(server.former, relay::UpstreamFactory::kMaxFormer,
                 [](auto& inner, auto& endpoint) { relay::archive_endpoint(inner, endpoint); });
    archive.choice(server.mode, relay::ClientAddress::transparent);
}

void archive(auto& archive, Said<TakeoverSelection> auto& selection) {
    archive.list(selection.servers, relay::kMaxServers,
                 [](auto& inner, auto& server) { inner.number(server); });
}

/// Whether a name has no control characters, because names are shown to users.
bool is_printable(const std::string& name) {
    return std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

void archive(auto& archive, Said<TakeoverRest> auto& rest) {
    archive.number(rest.held_at);
    archive.number(rest.sessions);
    archive.number(rest.numbered_sessions);
    archive.bytes(rest.relay, TakeoverLink::kMaxBytes);
}

void archive(auto& archive, Said<TakeoverLeft> auto& left) {
    archive.number(left.numbered_sessions);
}

std::vector<std::byte> bytes_of(const auto& message) {
    std::vector<std::byte> out;
    ArchiveWriter writer{out};
    archive(writer, message);
    return out;
}

template <typename State>
State finished(const ArchiveReader& reader, State state, const char* what) {
    if (!reader.done()) {
        throw HandoverError{std::string{"the running twscope's message about "} + what +
                            " is damaged"};
    }
    return state;
}

} // namespace

std::vector<std::byte> written(const TakeoverHello& greeting) {
    std::vector<std::byte> out;
    ArchiveWriter writer{out};
    writer.bytes(TakeoverHello::kName, TakeoverHello::kName.size());
    writer.number(greeting.version);
    return out;
}

std::vector<std::byte> written(const TakeoverOffer& offer) {
    return bytes_of(offer);
}

std::vector<std::byte> written(const TakeoverServer& server) {
    return bytes_of(server);
}

std::vector<std::byte> written(const TakeoverSelection& selection) {
    return bytes_of(selection);
}

std::vector<std::byte> written(const TakeoverRest& rest) {
    return bytes_of(rest);
}

std::vector<std::byte> written(const TakeoverLeft& left) {
    return bytes_of(left);
}

TakeoverHello read_hello(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    std::string name;
    TakeoverHello greeting;
    reader.bytes(name, TakeoverHello::kName.size());
    reader.number(greeting.version);
    if (reader.failed() || name != TakeoverHello::kName) { // other versions may append more
        throw HandoverError{"the greeting is not that of a twscope"};
    }
    return greeting;
}

TakeoverOffer read_offer(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverOffer offer;
    archive(reader, offer);
    if (offer.servers == 0 || offer.servers > relay::kMaxServers) {
        throw HandoverError{"the running twscope reports no server"};
    }
    return finished(reader, offer, "itself");
}

TakeoverServer read_server(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverServer server;
    archive(reader, server);
    if (!is_printable(server.name)) {
        reader.fail();
    }
    if (server.listen.empty() || server.listening_sockets == 0 ||
        server.listening_sockets > relay::kMaxListeningSockets) {
        throw HandoverError{"the running twscope reports no listening address"};
    }
    return finished(reader, std::move(server), "its servers");
}

TakeoverSelection read_selection(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverSelection selection;
    archive(reader, selection);
    if (!reader.done() || selection.servers.empty()) {
        throw HandoverError{"it named no servers to take over"};
    }
    return selection;
}

TakeoverRest read_rest(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverRest rest;
    archive(reader, rest);
    return finished(reader, std::move(rest), "its totals");
}

TakeoverLeft read_left(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverLeft left;
    archive(reader, left);
    return finished(reader, left, "its end");
}

bool SessionBatch::add(std::span<const std::byte> session, int socket) {
    constexpr std::size_t kLength = sizeof(std::uint32_t);
    if (sockets_.size() == TakeoverLink::kMaxDescriptors ||
        body_.size() + kLength + session.size() >= TakeoverLink::kMaxBytes) {
        return false;
    }
    ArchiveWriter{body_}.bytes(session, session.size());
    sockets_.push_back(socket);
    return true;
}

void SessionBatch::clear() {
    body_.clear();
    sockets_.clear();
}

std::vector<relay::SessionState> read_sessions(const TakeoverLink::Message& message) {
    ArchiveReader reader{message.body};
    std::vector<relay::SessionState> sessions;
    std::vector<std::byte> session;
    sessions.reserve(message.descriptors.size());
    for (std::size_t i = 0; i < message.descriptors.size(); ++i) {
        reader.bytes(session, message.body.size());
        sessions.push_back(relay::read_session(session));
    }
    return finished(reader, std::move(sessions), "its sessions");
}

std::uint64_t own_network() {
    struct stat found {};

    return ::stat("/proc/self/ns/net", &found) == 0 ? found.st_ino : 0;
}

} // namespace tw::process
