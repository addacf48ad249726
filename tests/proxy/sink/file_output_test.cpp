#include "proxy/sink/file_output.h"
#include "tests/support/program.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using tw::sink::FileOutput;
using namespace tw::test;

namespace {

/// Files of this process may not grow beyond `bytes` while it lives.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        handler_ = std::signal(SIGXFSZ, SIG_IGN);
    }

    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;
    FileSizeLimit(FileSizeLimit&&) = delete;
    FileSizeLimit& operator=(FileSizeLimit&&) = delete;

  private:
    rlimit before_{};
    void (*handler_)(int) = SIG_DFL;
};

} // namespace

TEST_CASE("a file holds what was written, in order, and nothing of what it held before") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records.jsonl");
    write_text(path, "a longer text of an earlier run\n");
    {
        FileOutput file{path};
        CHECK(file.path() == path);
        file.write("one\n");
        file.write("");
        file.write("two\nthree\n");
        CHECK_FALSE(file.failed());
        CHECK(file.error() == 0);
        CHECK(file.lost_lines() == 0);
    }
    CHECK(read_text(path) == "one\ntwo\nthree\n");
}

TEST_CASE("- is standard output, which stays open") {
    const TemporaryFolder folder;
    const std::string path = folder.file("out");
    const int before = ::dup(STDOUT_FILENO);
    const int redirected = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ::dup2(redirected, STDOUT_FILENO);
    { FileOutput{"-"}.write("one\n"); }
    const bool open = ::fcntl(STDOUT_FILENO, F_GETFD) != -1;
    ::dup2(before, STDOUT_FILENO);
    ::close(before);
    ::close(redirected);
    CHECK(open);
    CHECK(read_text(path) == "one\n");
}

TEST_CASE("what cannot be opened says why") {
    const TemporaryFolder folder;
    write_text(folder.file("plain"), "");

    struct Row {
        std::string path;
        int error;
    };

    const Row rows[] = {
        {"", ENOENT},
        {folder.path(), EISDIR},
        {folder.file("no/such/folder"), ENOENT},
        {folder.file("plain/file"), ENOTDIR},
        {folder.file(std::string(300, 'x')), ENAMETOOLONG},
    };
    for (const Row& row : rows) {
        CAPTURE(row.path);
        int error = 0;
        try {
            const FileOutput file{row.path};
        } catch (const std::system_error& failure) {
            error = failure.code().value();
        }
        CHECK(error == row.error);
    }
}

TEST_CASE("a full disk ends the writing for good, and the lines are counted") {
    FileOutput file{"/dev/full"};
    CHECK_FALSE(file.failed());
    file.write("one\ntwo\n");
    CHECK(file.failed());
    CHECK(file.error() == ENOSPC);
    CHECK(file.lost_lines() == 2);
    file.write("three\n");
    file.write("the rest of a line");
    CHECK(file.error() == ENOSPC);
    CHECK(file.lost_lines() == 3);
}

TEST_CASE("a block that fits in part counts as lost") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records.jsonl");
    constexpr rlim_t kLimit = 4096;
    {
        FileOutput file{path};
        const FileSizeLimit limit{kLimit};
        file.write(std::string(kLimit - 2, 'a') + '\n');
        CHECK(file.lost_lines() == 0);
        file.write("b\nc\n");
        CHECK(file.error() == EFBIG);
        // Of the first line one byte fitted: it is as lost as the second.
        CHECK(file.lost_lines() == 2);
    }
    CHECK(std::filesystem::file_size(path) == kLimit);
}
