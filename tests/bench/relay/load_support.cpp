#include "tests/bench/relay/load_support.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>

#include <dirent.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

namespace tw::bench {

std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * kSecond + now.tv_nsec;
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
}

int udp_socket() {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
    return fd;
}

int server_socket(std::uint16_t port) {
    const int fd = udp_socket();
    auto name = loopback(port);
    if (::bind(fd, as_sockaddr(&name), sizeof name) != 0) {
        throw std::runtime_error{"cannot bind a server's port"};
    }
    return fd;
}

int client_socket(std::size_t index, std::span<const std::uint16_t> avoided_ports) {
    auto name = loopback(0);
    // 127.200.0.1 and on: far from those that a proxy on loopback gives its sessions at the server.
    name.sin_addr.s_addr = htonl(0x7fc80001U + static_cast<std::uint32_t>(index));
    for (;;) {
        const int fd = udp_socket();
        sockaddr_in bound{};
        socklen_t size = sizeof bound;
        if (::bind(fd, as_sockaddr(&name), sizeof name) != 0 ||
            ::getsockname(fd, as_sockaddr(&bound), &size) != 0) {
            throw std::runtime_error{"cannot bind a client's socket"};
        }
        if (std::ranges::find(avoided_ports, ntohs(bound.sin_port)) == avoided_ports.end()) {
            return fd;
        }
        ::close(fd);
    }
}

std::int64_t cpu_time(const std::vector<int>& pids) {
    std::int64_t sum = 0;
    for (const int pid : pids) {
        const std::string tasks = fmt::format("/proc/{}/task", pid);
        DIR* const dir = ::opendir(tasks.c_str());
        if (dir == nullptr) {
            continue;
        }
        while (const dirent* entry = ::readdir(dir)) {
            if (entry->d_name[0] == '.') {
                continue; // `..` is the process, whose figures are its main thread's once more
            }
            std::ifstream stat{fmt::format("{}/{}/schedstat", tasks, entry->d_name)};
            std::int64_t on_cpu = 0;
            sum += stat >> on_cpu ? on_cpu : 0;
        }
        ::closedir(dir);
    }
    return sum;
}

} // namespace tw::bench
