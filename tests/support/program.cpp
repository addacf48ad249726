#include "tests/support/program.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tw::test {

namespace {

constexpr int kSignalled = 128;

pid_t start(const std::string& path, const std::vector<std::string>& arguments,
            const std::string& folder) {
    std::vector<std::string> words{path};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const auto into = [&](int descriptor, const std::string& name) {
        posix_spawn_file_actions_addopen(&actions, descriptor, name.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
    };
    const std::string out = folder + "/out";
    const std::string err = folder + "/err";
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    into(STDOUT_FILENO, out);
    into(STDERR_FILENO, err);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, path.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        throw std::runtime_error{"cannot start " + path};
    }
    return pid;
}

} // namespace

Program::Program(const std::string& path, const std::vector<std::string>& arguments,
                 const std::string& folder)
    : folder_{folder}, pid_{start(path, arguments, folder)} {}

Program::~Program() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
}

void Program::send_signal(int number) const {
    ::kill(pid_, number);
}

bool Program::has_ended() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == pid_;
}

std::string Program::err() const {
    return read_text(folder_ + "/err");
}

ProgramResult Program::finish() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return {.status = WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status),
            .out = read_text(folder_ + "/out"),
            .err = read_text(folder_ + "/err")};
}

ProgramResult run_program(const std::string& path, const std::vector<std::string>& arguments) {
    const TemporaryFolder folder;
    Program program{path, arguments, folder.path()};
    return program.finish();
}

std::string read_text(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream{path, std::ios::binary} << text;
}

std::string gzipped(const std::string& text) {
    const TemporaryFolder folder;
    write_text(folder.file("plain"), text);
    static_cast<void>(run_program("/bin/sh", {"-c", "gzip -n " + folder.file("plain")}));
    return read_text(folder.file("plain.gz"));
}

std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
        ++count;
    }
    return count;
}

bool becomes_true_within(std::chrono::seconds deadline, const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return true;
}

TemporaryFolder::TemporaryFolder()
    : path_{(std::filesystem::temp_directory_path() / "twscope-XXXXXX").string()} {
    if (::mkdtemp(path_.data()) == nullptr) {
        throw std::runtime_error{"no temporary folder"};
    }
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::vector<std::filesystem::path> TemporaryFolder::files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{path_}) {
        files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

} // namespace tw::test
