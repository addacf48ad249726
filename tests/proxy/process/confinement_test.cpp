#include "proxy/process/confinement.h"
#include "tests/support/program.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tw;
using test::TemporaryFolder;

namespace {

/// Runs `act` in a confined child process and returns its exit code.
int run_in_confined_child(const process::ConfinedAccess& access, const std::function<int()>& act) {
    const pid_t child = ::fork();
    if (child == 0) {
        static_cast<void>(process::confine_calling_thread(access));
        ::_exit(act());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int open_error_code(const std::filesystem::path& path, int flags) {
    const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    return file < 0 ? errno : 0;
}

} // namespace

TEST_CASE("the confinement is described in one line") {
    CHECK(process::describe(process::Confinement{}) == "nothing");
    CHECK(process::describe(process::Confinement{.no_new_privileges = true,
                                                 .seccomp = true,
                                                 .landlock_version = 3,
                                                 .memory_bytes = std::uint64_t{512} << 20U}) ==
          "no new privileges, seccomp, Landlock 3, 512 MiB of memory");
    CHECK(process::supported_confinement().no_new_privileges);
}

TEST_CASE("a confined process can still use memory, threads, time and open files") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records");
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(run_in_confined_child({}, [&] {
              bool written = false;
              std::thread{[&] { written = ::write(file, "one\n", 4) == 4; }}.join();
              const std::string large(1U << 20U, 'x');
              return written && large.size() == 1U << 20U ? 0 : 1;
          }) == 0);
    ::close(file);
    CHECK(test::read_text(path) == "one\n");
}

TEST_CASE("a confined process cannot start processes or open sockets other than internet sockets") {
    if (!process::supported_confinement().seccomp) {
        MESSAGE("not in this build: sanitizers need more system calls");
        return;
    }
    CHECK(run_in_confined_child({}, [] { return ::fork() == -1 ? errno : 0; }) == EPERM);
    CHECK(run_in_confined_child(
              {}, [] { return ::execl("/bin/true", "true", nullptr) == -1 ? errno : 0; }) == EPERM);
    CHECK(run_in_confined_child(
              {}, [] { return ::socket(AF_PACKET, SOCK_RAW, 0) == -1 ? errno : 0; }) == EPERM);
    CHECK(run_in_confined_child({}, [] { return ::kill(::getppid(), 0) == -1 ? errno : 0; }) ==
          EPERM);
    CHECK(run_in_confined_child(
              {}, [] { return ::socket(AF_INET, SOCK_DGRAM, 0) == -1 ? errno : 0; }) == 0);
    const auto open_unix_socket = [] {
        return ::socket(AF_UNIX, SOCK_STREAM, 0) == -1 ? errno : 0;
    };
    CHECK(run_in_confined_child({}, open_unix_socket) == EPERM);
}

TEST_CASE("a confined process can only read its maps and write its cache") {
    if (process::supported_confinement().landlock_version == 0) {
        MESSAGE("this kernel has no Landlock");
        return;
    }
    const TemporaryFolder maps;
    const TemporaryFolder cache;
    const TemporaryFolder others;
    test::write_text(maps.file("a.map"), "map");
    test::write_text(others.file("secret"), "secret");
    const TemporaryFolder outputs;
    test::write_text(outputs.file("records"), "records");
    const process::ConfinedAccess access{.readable = {maps.path()},
                                         .writable = {cache.path()},
                                         .writable_without_removal = {outputs.path()}};

    struct Row {
        std::filesystem::path path;
        int flags;
        int error;
    };

    const Row rows[] = {{maps.file("a.map"), O_RDONLY, 0},
                        {maps.file("a.map"), O_WRONLY, EACCES},
                        {maps.file("b.map"), O_WRONLY | O_CREAT, EACCES},
                        {cache.file("c.map"), O_RDWR | O_CREAT, 0},
                        {outputs.file("records"), O_RDWR, 0},
                        {outputs.file("records.2"), O_WRONLY | O_CREAT, 0},
                        {others.file("secret"), O_RDONLY, EACCES},
                        {others.file("new"), O_WRONLY | O_CREAT, EACCES},
                        {"/etc/passwd", O_RDONLY, EACCES}};
    for (const Row& row : rows) {
        CAPTURE(row.path.string());
        CAPTURE(row.flags);
        CHECK(run_in_confined_child(access, [&] { return open_error_code(row.path, row.flags); }) ==
              row.error);
    }
    const auto remove_file = [](const std::string& path) {
        return ::unlink(path.c_str()) == -1 ? errno : 0;
    };
    CHECK(run_in_confined_child(access, [&] { return remove_file(outputs.file("records")); }) ==
          EACCES);
    CHECK(run_in_confined_child(access, [&] { return remove_file(cache.file("c.map")); }) == 0);
}

TEST_CASE("a confined process has no capability beyond opening files and low ports") {
    // Not even root may change network settings or the owner of a file.
    CHECK(run_in_confined_child({}, [] {
              const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
              const int on = 1;
              const int done = ::setsockopt(socket, SOL_IP, IP_TRANSPARENT, &on, sizeof on);
              return done == -1 ? errno : 0;
          }) == EPERM);
    const TemporaryFolder folder;
    test::write_text(folder.file("own"), "");
    CHECK(run_in_confined_child({.writable = {folder.path()}}, [&] {
              return ::chown(folder.file("own").c_str(), 1, 1) == -1 ? errno : 0;
          }) == EPERM);
}

TEST_CASE("memory beyond the limit is refused") {
    constexpr std::uint64_t kLimit = std::uint64_t{256} << 20U;
    constexpr std::size_t kMuch = std::size_t{512} << 20U;
    const auto allocate_bytes = [](std::size_t bytes) {
        void* const memory = std::malloc(bytes);
        const bool taken = memory != nullptr;
        std::free(memory);
        return taken ? 0 : 1;
    };
    const bool sanitized = !process::supported_confinement().seccomp;
    CHECK(run_in_confined_child({.memory_bytes = kLimit}, [&] { return allocate_bytes(kMuch); }) ==
          (sanitized ? 0 : 1));
    CHECK(run_in_confined_child({.memory_bytes = kLimit}, [&] { return allocate_bytes(1000); }) ==
          0);
}
