// Counts the system calls of a relay without slowing it down as a tracer does. This library is loaded with LD_PRELOAD,
// wraps the C library's functions that relays call, and counts in the file that TW_CALLS names.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

using Count = std::atomic<std::uint64_t>;

Count unshared_count{0};

Count& shared_count() {
    const char* const path = std::getenv("TW_CALLS"); // NOLINT(concurrency-mt-unsafe): it stays
    const int file = path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) {
        return unshared_count;
    }
    void* const memory =
        ::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return memory == MAP_FAILED ? unshared_count : *static_cast<Count*>(memory);
}

/// Counts a call of a function and calls it.
template <typename Function, typename... Args>
auto count_and_call(const char* name, Args... args) {
    static Count& calls = shared_count();
    calls.fetch_add(1, std::memory_order_relaxed);
    static const auto function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
    return function(args...);
}

} // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's functions
extern "C" {

int epoll_wait(int set, epoll_event* events, int max, int timeout) {
    return count_and_call<decltype(epoll_wait)>("epoll_wait", set, events, max, timeout);
}

int epoll_ctl(int set, int operation, int descriptor, epoll_event* event) noexcept {
    return count_and_call<decltype(epoll_ctl)>("epoll_ctl", set, operation, descriptor, event);
}

int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
    return count_and_call<decltype(recvmmsg)>("recvmmsg", socket, messages, count, flags, timeout);
}

int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
    return count_and_call<decltype(sendmmsg)>("sendmmsg", socket, messages, count, flags);
}

ssize_t recvmsg(int socket, msghdr* message, int flags) {
    return count_and_call<decltype(recvmsg)>("recvmsg", socket, message, flags);
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
    return count_and_call<decltype(sendmsg)>("sendmsg", socket, message, flags);
}

ssize_t send(int socket, const void* bytes, std::size_t size, int flags) {
    return count_and_call<decltype(send)>("send", socket, bytes, size, flags);
}

int getsockopt(int socket, int level, int name, void* value, socklen_t* size) noexcept {
    return count_and_call<decltype(getsockopt)>("getsockopt", socket, level, name, value, size);
}

int timerfd_settime(int timer, int flags, const itimerspec* time, itimerspec* before) noexcept {
    return count_and_call<decltype(timerfd_settime)>("timerfd_settime", timer, flags, time, before);
}

ssize_t read(int descriptor, void* bytes, std::size_t size) {
    return count_and_call<decltype(read)>("read", descriptor, bytes, size);
}

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
    return count_and_call<decltype(write)>("write", descriptor, bytes, size);
}

} // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
