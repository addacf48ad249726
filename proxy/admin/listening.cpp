#include "proxy/admin/listening.h"

#include "proxy/relay/endpoint.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace tw::admin {

namespace {

/// Connections that wait to be accepted.
constexpr int kBacklog = 128;

relay::UniqueFd open_socket(int family) {
    return relay::UniqueFd{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
    throw ListenError{"cannot listen on " + where + ": " + why};
}

/// By errno. `can_go`: what is in the way may go by itself.
[[noreturn]] void refuse(const std::string& where, bool can_go = true) {
    const int error = errno;
    if (can_go && (error == EADDRINUSE || error == EADDRNOTAVAIL)) {
        throw ListenLaterError{"cannot listen on " + where + ": " +
                               std::generic_category().message(error)};
    }
    refuse(where, std::generic_category().message(error));
}

bool is_socket(const std::string& path) {
    struct stat found {};

    return ::lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

/// False: it is too long.
bool name_of(const std::string& path, sockaddr_un& name) {
    name = {};
    name.sun_family = AF_UNIX;
    if (path.size() >= sizeof name.sun_path) {
        return false;
    }
    std::memcpy(name.sun_path, path.data(), path.size());
    return true;
}

/// Removes a socket that a process has left behind; one that is served, and any other file, stay.
void make_room(const std::string& path, const sockaddr_un& name) {
    if (!is_socket(path)) {
        return;
    }
    const relay::UniqueFd probe = open_socket(AF_UNIX);
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 &&
        errno == ECONNREFUSED) {
        ::unlink(path.c_str());
    }
}

} // namespace

Listening::Listening(HttpAddress where) : where_{std::move(where)} {
    if (where_.path.empty()) {
        listen_on_port();
    } else {
        listen_on_path();
    }
    know_socket();
}

Listening::Listening(HttpAddress where, relay::UniqueFd bound)
    : where_{std::move(where)}, socket_{std::move(bound)} {
    know_socket();
}

void Listening::know_socket() {
    relay::SocketAddress bound{};
    socklen_t length = sizeof bound;
    ::getsockname(socket_.get(), &bound.base, &length);
    family_ = bound.base.sa_family;
    if (family_ == AF_UNIX) {
        way_ = Way::owner;
        return;
    }
    const auto name = relay::to_asio(relay::endpoint_from(&bound.base));
    where_.port = name.port();
    way_ = name.address().is_loopback() ? Way::loopback : Way::network;
}

void Listening::listen_on_path() {
    constexpr mode_t kOwnerOnly = 0600;
    const std::string shown = "unix:" + where_.path;
    sockaddr_un name{};
    if (!name_of(where_.path, name)) {
        refuse(shown, "the path of a unix socket has at most " +
                          std::to_string(sizeof name.sun_path - 1) + " characters");
    }
    make_room(where_.path, name);
    socket_ = open_socket(AF_UNIX);
    // The file gets the socket's own mode, so that it never has another.
    if (::fchmod(socket_.get(), kOwnerOnly) != 0 ||
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
        ::listen(socket_.get(), kBacklog) != 0) {
        const int error = errno;
        const bool can_go = is_socket(where_.path);
        errno = error;
        refuse(shown, can_go);
    }
}

void Listening::listen_on_port() {
    boost::system::error_code unreadable;
    const auto address = boost::asio::ip::make_address(where_.address, unreadable);
    if (unreadable) {
        refuse(where_.address + ':' + std::to_string(where_.port), unreadable.message());
    }
    const boost::asio::ip::udp::endpoint name{address, where_.port};
    socket_ = open_socket(name.protocol().family());
    const int on = 1;
    if (::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(socket_.get(), name.data(), static_cast<socklen_t>(name.size())) != 0 ||
        ::listen(socket_.get(), kBacklog) != 0) {
        refuse(relay::to_string(name));
    }
}

} // namespace tw::admin
