// A library for LD_PRELOAD that makes one call in twscope fail: the N-th call of a function, in the
// relay's or the observer's process.
//
// TW_FAULT=relay:send:3: the process (relay, observer), the function's kind (see kKinds), and the
// number N from 1. With 0, no call fails, and calls are only counted.
// TW_FAULT_COUNTS=FILE: the file for the counts. It gets a 64-bit number for each kind, in the
// order of the table, then a number that is 1 after the call has failed.
//
// Only calls through the dynamic linker are counted, from main() on; calls within the C library are
// not. Calls fail only in ways that are possible: writing to an eventfd succeeds, and fcntl() fails
// only if it creates a descriptor. libseccomp loops forever without memory, so its allocations
// never fail.

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t size);             // NOLINT(readability-identifier-naming): theirs
void* __libc_calloc(std::size_t n, std::size_t s); // NOLINT(readability-identifier-naming): theirs
void* __libc_realloc(void* old, std::size_t size); // NOLINT(readability-identifier-naming): theirs
// NOLINTNEXTLINE(readability-identifier-naming): theirs
void* __libc_memalign(std::size_t a, std::size_t s);
}

namespace {

struct FunctionKind {
    const char* name;
    int error; ///< the error of a failed call
};

enum KindId : std::size_t {
    memory,
    writing,
    sending,
    receiving,
    binding,
    opening,
    mapping,
    sockets,
    polling,
    duplicates,
    processes,
    threads,
    num_kinds
};

constexpr std::array<FunctionKind, KindId::num_kinds> kKinds{{
    {"malloc", ENOMEM}, // also calloc, realloc, aligned_alloc and operator new
    {"write", EIO},     // also writev
    {"send", ENOBUFS},  // also sendto, sendmsg, sendmmsg
    {"recv", ENOMEM},   // also recvfrom, recvmsg, recvmmsg
    {"bind", EACCES},
    {"open", EMFILE},   // also openat
    {"mmap", ENOMEM},   // also ftruncate, which sets the size of shared memory
    {"socket", EMFILE}, // also socketpair, eventfd, timerfd_create, memfd_create
    {"epoll", ENOMEM},  // epoll_create1, epoll_ctl
    {"dup", EMFILE},    // also fcntl
    {"spawn", EAGAIN},  // also syscall(), which calls pidfd_open and Landlock
    {"thread", EAGAIN}, // pthread_create
}};

/// The counts of calls, in memory shared with the test if it asked for that.
struct CallCounts {
    std::array<std::atomic<std::uint64_t>, KindId::num_kinds> calls;
    std::atomic<std::uint64_t> failed;
};

CallCounts own_counts;                   // NOLINT: one for the process
std::atomic<CallCounts*> counts{};       // NOLINT: null in processes that TW_FAULT does not name
std::size_t failing = KindId::num_kinds; // NOLINT: set before `counts`
std::uint64_t failing_call = 0;          // NOLINT
std::atomic<bool> in_main{false};        // NOLINT
int (*real_main)(int, char**, char**) = nullptr; // NOLINT

std::array<std::atomic<bool>, 256> eventfds{}; // NOLINT

bool is_eventfd(int file) {
    return file >= 0 && static_cast<std::size_t>(file) < eventfds.size() &&
           eventfds[static_cast<std::size_t>(file)];
}

bool is_of_libseccomp(const void* caller) {
    Dl_info info{};
    return ::dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libseccomp") != nullptr;
}

/// Whether this call is the one that must fail.
bool must_fail(KindId kind, const void* caller = nullptr) {
    CallCounts* const here = counts.load(std::memory_order_acquire);
    if (here == nullptr || !in_main) {
        return false;
    }
    const std::uint64_t number = here->calls[kind].fetch_add(1) + 1;
    if (kind != failing || number != failing_call || is_of_libseccomp(caller)) {
        return false;
    }
    here->failed = 1;
    errno = kKinds[kind].error;
    return true;
}

/// Returns `relay` for twscope itself, `observer` for the process that it starts, otherwise "".
const char* role_of_process() {
    std::array<char, 4096> line{};
    const int file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", 0));
    const auto size = ::syscall(SYS_read, file, line.data(), line.size() - 1);
    ::close(file);
    if (size <= 0 || std::strstr(line.data(), "twscope") == nullptr) {
        return "";
    }
    for (const char* at = line.data(); at < line.data() + size; at += std::strlen(at) + 1) {
        if (std::strncmp(at, "--observer=", std::strlen("--observer=")) == 0) {
            return "observer";
        }
    }
    return "relay";
}

template <typename Function>
Function next_function(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

/// Calls the C library's function that kFunction replaces, or returns -1 if this call must fail.
template <auto kFunction, typename... Args>
auto call_or_fail(KindId kind, const char* name, Args... args) {
    static const auto next = next_function<decltype(kFunction)>(name);
    return must_fail(kind) ? decltype(next(args...)){-1} : next(args...);
}

__attribute__((constructor)) void begin() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before main there is one thread
    const char* const wanted = std::getenv("TW_FAULT");
    if (wanted == nullptr) {
        return;
    }
    std::array<char, 16> process{};
    std::array<char, 16> kind{};
    unsigned long long number = 0;
    if (std::sscanf(wanted, "%15[^:]:%15[^:]:%llu", process.data(), kind.data(), &number) != 3 ||
        std::strcmp(process.data(), role_of_process()) != 0) {
        return;
    }
    for (std::size_t i = 0; i < KindId::num_kinds; ++i) {
        if (std::strcmp(kKinds[i].name, kind.data()) == 0) {
            failing = i;
        }
    }
    failing_call = number;
    CallCounts* seen = &own_counts;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): as above
    if (const char* const path = std::getenv("TW_FAULT_COUNTS")) {
        const int file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR));
        // NOLINTNEXTLINE(performance-no-int-to-ptr): mmap itself is one of those that may fail
        void* const memory = reinterpret_cast<void*>(::syscall(
            SYS_mmap, nullptr, sizeof(CallCounts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        ::close(file);
        seen = memory == MAP_FAILED ? seen : static_cast<CallCounts*>(memory);
    }
    counts.store(seen, std::memory_order_release);
}

} // namespace

// Replacements of the C library's functions. One call of them fails.
extern "C" {

/// The C library's start function, replaced to know when main begins.
// NOLINTNEXTLINE(readability-identifier-naming): the C library's name
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                      void (*fini)(), void (*loader)(), void* stack) {
    static const auto next =
        next_function<int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(),
                              void (*)(), void*)>("__libc_start_main");
    real_main = main;
    const auto begin_main = [](int count, char** arguments, char** environment) {
        in_main = true;
        return real_main(count, arguments, environment);
    };
    return next(begin_main, argc, argv, init, fini, loader, stack);
}

void* malloc(std::size_t size) {
    return must_fail(KindId::memory, __builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
    return must_fail(KindId::memory, __builtin_return_address(0)) ? nullptr
                                                                  : __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) {
    return must_fail(KindId::memory, __builtin_return_address(0)) ? nullptr
                                                                  : __libc_realloc(old, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    return must_fail(KindId::memory, __builtin_return_address(0))
               ? nullptr
               : __libc_memalign(alignment, size);
}

ssize_t write(int file, const void* data, std::size_t size) {
    static const auto next = next_function<decltype(&::write)>("write");
    return !is_eventfd(file) && must_fail(KindId::writing) ? -1 : next(file, data, size);
}

ssize_t writev(int file, const iovec* parts, int count) {
    return call_or_fail<&::writev>(KindId::writing, "writev", file, parts, count);
}

ssize_t send(int socket, const void* data, std::size_t size, int flags) {
    return call_or_fail<&::send>(KindId::sending, "send", socket, data, size, flags);
}

ssize_t sendto(int socket, const void* data, std::size_t size, int flags, const sockaddr* to,
               socklen_t length) {
    return call_or_fail<&::sendto>(KindId::sending, "sendto", socket, data, size, flags, to,
                                   length);
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
    return call_or_fail<&::sendmsg>(KindId::sending, "sendmsg", socket, message, flags);
}

int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
    return call_or_fail<&::sendmmsg>(KindId::sending, "sendmmsg", socket, messages, count, flags);
}

ssize_t recv(int socket, void* data, std::size_t size, int flags) {
    return call_or_fail<&::recv>(KindId::receiving, "recv", socket, data, size, flags);
}

ssize_t recvfrom(int socket, void* data, std::size_t size, int flags, sockaddr* from,
                 socklen_t* length) {
    return call_or_fail<&::recvfrom>(KindId::receiving, "recvfrom", socket, data, size, flags, from,
                                     length);
}

ssize_t recvmsg(int socket, msghdr* message, int flags) {
    return call_or_fail<&::recvmsg>(KindId::receiving, "recvmsg", socket, message, flags);
}

int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
    return call_or_fail<&::recvmmsg>(KindId::receiving, "recvmmsg", socket, messages, count, flags,
                                     timeout);
}

int bind(int socket, const sockaddr* address, socklen_t length) noexcept {
    return call_or_fail<&::bind>(KindId::binding, "bind", socket, address, length);
}

int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const auto mode = va_arg(rest, mode_t); // undefined if there is no mode, and then unused
    va_end(rest);
    static const auto next = next_function<int (*)(const char*, int, mode_t)>("open");
    return must_fail(KindId::opening) ? -1 : next(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const auto mode = va_arg(rest, mode_t);
    va_end(rest);
    static const auto next = next_function<int (*)(int, const char*, int, mode_t)>("openat");
    return must_fail(KindId::opening) ? -1 : next(folder, path, flags, mode);
}

void* mmap(void* where, std::size_t size, int protection, int flags, int file,
           off_t offset) noexcept {
    static const auto next =
        next_function<void* (*)(void*, std::size_t, int, int, int, off_t)>("mmap");
    return must_fail(KindId::mapping) ? MAP_FAILED
                                      : next(where, size, protection, flags, file, offset);
}

int ftruncate(int file, off_t size) noexcept {
    return call_or_fail<&::ftruncate>(KindId::mapping, "ftruncate", file, size);
}

int socket(int domain, int type, int protocol) noexcept {
    return call_or_fail<&::socket>(KindId::sockets, "socket", domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int* ends) noexcept {
    return call_or_fail<&::socketpair>(KindId::sockets, "socketpair", domain, type, protocol, ends);
}

int eventfd(unsigned value, int flags) noexcept {
    static const auto next = next_function<int (*)(unsigned, int)>("eventfd");
    const int file = must_fail(KindId::sockets) ? -1 : next(value, flags);
    if (file >= 0 && static_cast<std::size_t>(file) < eventfds.size()) {
        eventfds[static_cast<std::size_t>(file)] = true;
    }
    return file;
}

int close(int file) {
    static const auto next = next_function<int (*)(int)>("close");
    if (is_eventfd(file)) {
        eventfds[static_cast<std::size_t>(file)] = false;
    }
    return next(file);
}

int timerfd_create(clockid_t clock, int flags) noexcept {
    return call_or_fail<&::timerfd_create>(KindId::sockets, "timerfd_create", clock, flags);
}

int memfd_create(const char* name, unsigned flags) noexcept {
    return call_or_fail<&::memfd_create>(KindId::sockets, "memfd_create", name, flags);
}

int epoll_create1(int flags) noexcept {
    return call_or_fail<&::epoll_create1>(KindId::polling, "epoll_create1", flags);
}

int epoll_ctl(int set, int operation, int file, epoll_event* event) noexcept {
    return call_or_fail<&::epoll_ctl>(KindId::polling, "epoll_ctl", set, operation, file, event);
}

int dup(int file) noexcept {
    return call_or_fail<&::dup>(KindId::duplicates, "dup", file);
}

int fcntl(int file, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void* const argument = va_arg(rest, void*);
    va_end(rest);
    static const auto next = next_function<int (*)(int, int, ...)>("fcntl");
    const bool makes_one = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    return makes_one && must_fail(KindId::duplicates) ? -1 : next(file, command, argument);
}

int posix_spawn(pid_t* id, const char* path, const posix_spawn_file_actions_t* files,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) {
    static const auto next =
        next_function<int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                              const posix_spawnattr_t*, char* const*, char* const*)>("posix_spawn");
    return must_fail(KindId::processes) ? kKinds[KindId::processes].error
                                        : next(id, path, files, attributes, arguments, environment);
}

long syscall(long number, ...) noexcept {
    va_list rest;
    va_start(rest, number);
    std::array<long, 6> arguments{};
    for (long& argument : arguments) {
        argument = va_arg(rest, long);
    }
    va_end(rest);
    static const auto next = next_function<long (*)(long, ...)>("syscall");
    return must_fail(KindId::processes) ? -1
                                        : next(number, arguments[0], arguments[1], arguments[2],
                                               arguments[3], arguments[4], arguments[5]);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*),
                   void* argument) noexcept {
    static const auto next =
        next_function<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
            "pthread_create");
    return must_fail(KindId::threads) ? kKinds[KindId::threads].error
                                      : next(thread, attributes, begin, argument);
}

} // extern "C"
