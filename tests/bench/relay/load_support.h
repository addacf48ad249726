#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

/// Functions shared by the load generators.
namespace tw::bench {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr int kSocketBuffer = 4 * 1024 * 1024;

/// Returns the steady clock's time.
[[nodiscard]] std::int64_t now_ns();

[[nodiscard]] sockaddr_in loopback(std::uint16_t port);

/// Returns a non-blocking socket with large buffers.
[[nodiscard]] int udp_socket();

/// Returns a udp_socket() bound to a port of loopback. Errors: std::runtime_error.
[[nodiscard]] int server_socket(std::uint16_t port);

/// Returns a udp_socket() bound to its own address of 127.0.0.0/8, since players have different addresses.
/// `avoided_ports`: the server's and the proxy's, because a proxy rejects datagrams from these ports of this machine.
/// Errors: std::runtime_error.
[[nodiscard]] int client_socket(std::size_t index, std::span<const std::uint16_t> avoided_ports);

/// Returns the CPU time of the processes and all their threads, in ns.
[[nodiscard]] std::int64_t cpu_time(const std::vector<int>& pids);

template <typename Name>
sockaddr* as_sockaddr(Name* name) {
    return static_cast<sockaddr*>(static_cast<void*>(name));
}

} // namespace tw::bench
