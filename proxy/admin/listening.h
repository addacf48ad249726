#pragma once

#include "proxy/relay/unique_fd.h"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tw::admin {

/// Where a server is to listen: on an address and port, or on a unix socket.
struct HttpAddress {
    std::string address{};  ///< a literal address
    std::uint16_t port = 0; ///< 0: the system chooses
    std::string path{};     ///< of a unix socket; empty: `address` counts
};

/// The server cannot listen; what() is one line for the user.
class ListenError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// What may be there later: the address, or a port or a socket that another one serves.
class ListenLaterError : public ListenError {
  public:
    using ListenError::ListenError;
};

/// How a connection came.
enum class Way : std::uint8_t {
    network,  ///< from anywhere
    loopback, ///< to an address that only this machine reaches
    owner,    ///< by a unix socket that only the user we run as, and root, may connect to
};

/// A socket that listens.
class Listening {
  public:
    /// Binds. A unix socket gets mode 0600; one that nobody serves any more makes room for it, and
    /// stays behind at our end.
    /// Errors: throws ListenError, of what may come yet ListenLaterError.
    explicit Listening(HttpAddress where);
    /// Another process has bound it there.
    Listening(HttpAddress where, relay::UniqueFd bound);

    /// The way of those who connect to it.
    [[nodiscard]] Way way() const noexcept { return way_; }

    /// As asked for, with the port in use.
    [[nodiscard]] const HttpAddress& where() const noexcept { return where_; }

    /// As socket() takes it.
    [[nodiscard]] int family() const noexcept { return family_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  private:
    void listen_on_path();
    void listen_on_port();
    void know_socket();

    HttpAddress where_;
    relay::UniqueFd socket_;
    int family_ = 0;
    Way way_ = Way::network;
};

} // namespace tw::admin
