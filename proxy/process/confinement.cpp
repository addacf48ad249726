#include "proxy/process/confinement.h"

#include "proxy/base/descriptors.h"

#include <array>
#include <cerrno>
#include <memory>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tw::process {

namespace {

// Sanitizers need additional system calls and address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

/// The system calls that an observer makes, including those of libc, Asio, OpenSSL, zlib and
/// spdlog.
constexpr std::array kAllowedSystemCalls{
    // memory and threads
    SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect),
    SCMP_SYS(madvise), SCMP_SYS(membarrier), SCMP_SYS(futex), SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq), SCMP_SYS(set_tid_address), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
    SCMP_SYS(setpriority), SCMP_SYS(getpriority), SCMP_SYS(arch_prctl), SCMP_SYS(getcpu),
    // this process
    SCMP_SYS(gettid), SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(getuid), SCMP_SYS(geteuid),
    SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getrandom), SCMP_SYS(getrusage),
    SCMP_SYS(getrlimit), SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getcwd), SCMP_SYS(umask),
    SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall),
    // time
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(nanosleep), SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime), SCMP_SYS(timerfd_gettime),
    // waiting
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2),
    SCMP_SYS(eventfd2), SCMP_SYS(pipe2),
    // files; Landlock limits them to permitted paths
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write),
    SCMP_SYS(writev), SCMP_SYS(pwrite64), SCMP_SYS(lseek), SCMP_SYS(open), SCMP_SYS(openat),
    SCMP_SYS(close), SCMP_SYS(close_range), SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3),
    SCMP_SYS(fcntl), SCMP_SYS(stat), SCMP_SYS(fstat), SCMP_SYS(lstat), SCMP_SYS(newfstatat),
    SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
    SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(ftruncate), SCMP_SYS(fallocate),
    SCMP_SYS(fadvise64), SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2),
    SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat), SCMP_SYS(chmod), SCMP_SYS(copy_file_range), SCMP_SYS(sendfile),
    // sockets
    SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(connect),
    SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(setsockopt), SCMP_SYS(getsockopt),
    SCMP_SYS(sendto), SCMP_SYS(sendmsg), SCMP_SYS(sendmmsg), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),
    SCMP_SYS(recvmmsg), SCMP_SYS(shutdown)};

/// Returns a condition for a seccomp rule: the argument with this index has all of these bits.
scmp_arg_cmp has_bits(unsigned argument, std::uint64_t bits) {
    return {argument, SCMP_CMP_MASKED_EQ, bits, bits};
}

/// Returns a condition for a seccomp rule: the int argument with this index has this value. The
/// upper half of the register is ignored.
scmp_arg_cmp equals_int(unsigned argument, std::uint64_t value) {
    return {argument, SCMP_CMP_MASKED_EQ, 0xffffffff, value};
}

bool add_system_call_rules(scmp_filter_ctx filter) {
    bool added = true;
    const auto allow = [&](int call) {
        added = added && seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0;
    };
    const auto allow_if = [&](int call, const scmp_arg_cmp& condition) {
        added = added && seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &condition) == 0;
    };
    for (const int call : kAllowedSystemCalls) {
        allow(call);
    }
    for (const int family : {AF_INET, AF_INET6}) {
        allow_if(SCMP_SYS(socket), equals_int(0, static_cast<unsigned>(family)));
    }
    for (const unsigned long request :
         {static_cast<unsigned long>(TCGETS), static_cast<unsigned long>(FIONBIO),
          static_cast<unsigned long>(FIONREAD), static_cast<unsigned long>(TIOCGWINSZ)}) {
        allow_if(SCMP_SYS(ioctl), equals_int(1, request));
    }
    // Allows new threads but no new processes. Rules can check the flags of clone, but not those of
    // clone3. Without clone3, libc uses clone.
    allow_if(SCMP_SYS(clone), has_bits(0, CLONE_THREAD));
    added = added && seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0;
    // abort() sends a signal to its own process with tgkill. prlimit64 may read limits, but not set
    // them.
    allow_if(SCMP_SYS(tgkill), equals_int(0, static_cast<unsigned>(::getpid())));
    allow_if(SCMP_SYS(prlimit64), scmp_arg_cmp{2, SCMP_CMP_EQ, 0, 0});
    allow_if(SCMP_SYS(prctl), equals_int(0, PR_SET_NAME));
    return added;
}

bool filter_system_calls() {
    const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter{
        kSanitized ? nullptr : seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release};
    return filter != nullptr && add_system_call_rules(filter.get()) &&
           seccomp_load(filter.get()) == 0;
}

int landlock_version() {
    const long version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? static_cast<int>(version) : 0;
}

constexpr std::uint64_t kReadRights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWriteRights =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |
    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR;
/// All access rights of the first Landlock version. Access that no rule allows is denied.
constexpr std::uint64_t kAllRights = kReadRights | kWriteRights | LANDLOCK_ACCESS_FS_EXECUTE |
                                     LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                                     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                     LANDLOCK_ACCESS_FS_MAKE_SYM;
/// The access rights that a rule for a file may contain. Other rights are for folders only.
constexpr std::uint64_t kFileRights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;

/// Adds a rule that allows access to a path. Does nothing if the path does not exist.
void allow_path(int rules, const std::filesystem::path& path, std::uint64_t access) {
    const base::UniqueFd at{::open(path.c_str(), O_PATH | O_CLOEXEC)};
    std::error_code ignored;
    if (!at.valid()) {
        return;
    }
    landlock_path_beneath_attr rule{};
    rule.allowed_access =
        std::filesystem::is_directory(path, ignored) ? access : access & kFileRights;
    rule.parent_fd = at.get();
    std::ignore = ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

bool restrict_file_access(const ConfinedAccess& permissions) {
    landlock_ruleset_attr attributes{};
    attributes.handled_access_fs = kAllRights;
    const base::UniqueFd rules{static_cast<int>(
        ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0))};
    if (!rules.valid()) {
        return false;
    }
    for (const char* const path : {"/usr/share", "/usr/lib/ssl", "/etc/ssl", "/etc/localtime",
                                   "/sys/devices/system/cpu", "/proc/self"}) {
        allow_path(rules.get(), path, kReadRights);
    }
    const std::pair<const std::vector<std::filesystem::path>&, std::uint64_t> permitted[]{
        {permissions.readable, kReadRights},
        {permissions.writable, kReadRights | kWriteRights},
        {permissions.writable_without_removal, kFileRights | LANDLOCK_ACCESS_FS_MAKE_REG}};
    for (const auto& [paths, rights] : permitted) {
        for (const auto& path : paths) {
            allow_path(rules.get(), path, rights);
        }
    }
    return ::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0;
}

/// Drops all capabilities except those for opening files and low ports.
void drop_capabilities() {
    constexpr std::uint32_t kKeptCapabilities =
        1U << CAP_NET_BIND_SERVICE | 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> own{};
    if (::syscall(SYS_capget, &header, own.data()) != 0) {
        return;
    }
    const std::uint32_t kept = own[0].permitted & kKeptCapabilities;
    own = {};
    own[0].effective = own[0].permitted = kept;
    std::ignore = ::syscall(SYS_capset, &header, own.data());
    std::ignore = ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

} // namespace

void drop_privileges() {
    drop_capabilities();
    std::ignore = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

Confinement confine_calling_thread(const ConfinedAccess& permissions) {
    Confinement confinement;
    const rlimit limit{.rlim_cur = permissions.memory_bytes, .rlim_max = permissions.memory_bytes};
    if (permissions.memory_bytes != 0 && !kSanitized && ::setrlimit(RLIMIT_DATA, &limit) == 0) {
        confinement.memory_bytes = permissions.memory_bytes;
    }
    drop_capabilities();
    confinement.no_new_privileges = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    confinement.landlock_version = restrict_file_access(permissions) ? landlock_version() : 0;
    confinement.seccomp = filter_system_calls();
    return confinement;
}

Confinement supported_confinement() {
    return {.no_new_privileges = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) >= 0,
            .seccomp = !kSanitized && ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0,
            .landlock_version = landlock_version()};
}

std::string describe(const Confinement& confinement) {
    std::vector<std::string> parts;
    if (confinement.no_new_privileges) {
        parts.emplace_back("no new privileges");
    }
    if (confinement.seccomp) {
        parts.emplace_back("seccomp");
    }
    if (confinement.landlock_version != 0) {
        parts.push_back(fmt::format("Landlock {}", confinement.landlock_version));
    }
    if (confinement.memory_bytes != 0) {
        constexpr unsigned kMiB = 20;
        parts.push_back(fmt::format("{} MiB of memory", confinement.memory_bytes >> kMiB));
    }
    return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

} // namespace tw::process
