#include "proxy/run/service_notice.h"

#include "proxy/relay/unique_fd.h"

#include <cstddef>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace tw::run {

bool notify_service(std::string_view state) {
    const char* const given =
        std::getenv("NOTIFY_SOCKET"); // NOLINT(concurrency-mt-unsafe): no one sets it
    const std::string_view path = given == nullptr ? "" : given;
    sockaddr_un name{};
    if (path.empty() || path.size() >= sizeof name.sun_path) {
        return false;
    }
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, path.size());
    if (path.front() == '@') {
        name.sun_path[0] = '\0'; // one without a file
    }
    const relay::UniqueFd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    return ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                    reinterpret_cast<const sockaddr*>(&name),
                    length) == static_cast<ssize_t>(state.size());
}

void notify_ready() {
    notify_service(fmt::format("READY=1\nMAINPID={}", ::getpid()));
}

} // namespace tw::run
