#include "proxy/base/clock.h"
#include "proxy/store/file_output.h"
#include "proxy/store/recording.h"
#include "tests/proxy/store/faulty_disk.h"
#include "tests/proxy/store/recording_bytes.h"
#include "tests/proxy/store/storing_output.h"
#include "tests/support/full_disk.h"
#include "tests/support/program.h"
#include "tests/support/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tw::store;
using namespace tw::test;
using tw::capture::capture_format;

TEST_CASE("a file contains the written data in order, and none of its earlier data") {
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
        CHECK(file.num_lost_entries() == 0);
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

TEST_CASE("an output file that cannot be opened is an error with the cause") {
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

TEST_CASE("opening a pipe waits for a reader for a limited time, and reopening does not wait") {
    const TemporaryFolder folder;
    const std::string path = folder.file("pipe");
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    try {
        const FileOutput unread{path, record_line_format(), std::chrono::milliseconds{30}};
        FAIL("it was opened");
    } catch (const std::system_error& error) {
        CHECK(error.code() == std::errc::timed_out);
    }
    const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    {
        FileOutput file{path, capture_format()};
        file.write("text\n");
        std::array<char, 4096> text{};
        const ssize_t read = ::read(reader, text.data(), text.size());
        const std::string wanted = capture_format().file_header() + "text\n";
        CHECK((std::string{text.data(), static_cast<std::size_t>(read)} == wanted));
    }
    ::close(reader);
}

TEST_CASE("after a full disk, nothing is written, and the lost lines are counted") {
    FileOutput file{"/dev/full"};
    CHECK_FALSE(file.failed());
    file.write("one\ntwo\n");
    CHECK(file.failed());
    CHECK(file.error() == ENOSPC);
    CHECK(file.num_lost_entries() == 2);
    file.write("three\n");
    file.write("the rest of a line");
    CHECK(file.error() == ENOSPC);
    CHECK(file.num_lost_entries() == 3);
}

TEST_CASE("a line of which only a part fits counts as lost") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records.jsonl");
    constexpr rlim_t kLimit = 4096;
    {
        FileOutput file{path};
        const FullDisk disk{kLimit};
        file.write(std::string(kLimit - 2, 'a') + '\n');
        CHECK(file.num_lost_entries() == 0);
        file.write("b\nc\n");
        CHECK(file.error() == EFBIG);
        // Only one byte of the first line fits. Therefore both lines are lost.
        CHECK(file.num_lost_entries() == 2);
    }
    CHECK(std::filesystem::file_size(path) == kLimit);
}

TEST_CASE("after stop_waiting_for_reader(), lines that a slow reader does not read are lost") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    FileOutput file{"/proc/self/fd/" + std::to_string(ends[1])};
    file.stop_waiting_for_reader();
    constexpr int kLines = 4000;
    std::string lines;
    for (int i = 0; i < kLines; ++i) {
        lines += std::string(99, 'a') + '\n';
    }
    file.write(lines);
    CHECK(file.error() == ETIMEDOUT);
    std::string taken(1U << 20U, '\0');
    taken.resize(static_cast<std::size_t>(::read(ends[0], taken.data(), taken.size())));
    const auto whole = static_cast<std::uint64_t>(std::ranges::count(taken, '\n'));
    CHECK(whole > 0);
    CHECK(file.num_lost_entries() + whole == kLines);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("if the reader of a pipe ends, lines are lost, but no signal ends the process") {
    const auto handler = std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    FileOutput file{"/proc/self/fd/" + std::to_string(ends[1])};
    ::close(ends[0]);
    file.write("one\ntwo\n");
    CHECK(file.error() == EPIPE);
    CHECK(file.num_lost_entries() == 2);
    ::close(ends[1]);
    std::signal(SIGPIPE, handler);
}

TEST_CASE("when the output switches to another file, no line is divided") {
    struct Row {
        const char* name;
        std::vector<std::string> before;
        std::vector<std::string> after;
        std::string first;
        std::string second;
    };

    const Row rows[] = {
        {"between lines", {"one\n"}, {"two\n"}, "one\n", "two\n"},
        {"within a line", {"one\ntw"}, {"o\nthree\n", "four\n"}, "one\ntwo\n", "three\nfour\n"},
        {"within a long line", {"o"}, {"n", "e", "\n", "two\n"}, "one\n", "two\n"},
        {"with a line's end to come", {"one"}, {"\ntwo\n"}, "one\n", "two\n"},
        {"before anything", {}, {"one\n"}, "", "one\n"},
        {"and nothing more", {"one\n"}, {""}, "one\n", "what was there\n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        FileOutput file{folder.file("first")};
        for (const std::string& block : row.before) {
            file.write(block);
        }
        const bool whole = row.after.front().empty();
        std::filesystem::rename(folder.file("first"), folder.file("moved"));
        write_text(folder.file("first"), whole ? "what was there\n" : "");
        file.request_reopening();
        for (const std::string& block : row.after) {
            file.write(block);
        }
        CHECK(read_text(folder.file("moved")) == row.first);
        CHECK(read_text(folder.file("first")) == row.second);
    }
}

TEST_CASE("after a failure, writing continues in another file, and the loss count stays") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records");
    std::filesystem::create_symlink("/dev/full", path);
    FileOutput file{path};
    file.write("one\ntwo\nthr");
    CHECK(file.failed());
    file.write("ee\n");
    file.write("four\nfi");
    CHECK(file.num_lost_entries() == 4);
    std::filesystem::remove(path);
    file.request_reopening();
    file.write("ve\nsix\n");
    CHECK_FALSE(file.failed());
    CHECK(file.num_lost_entries() == 5);
    CHECK(read_text(path) == "six\n");
}

TEST_CASE("a path that cannot be opened again is reported, and the open file is still used") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.file("there"));
    FileOutput file{folder.file("there/records")};
    file.write("one\n");
    std::filesystem::rename(folder.file("there"), folder.file("elsewhere"));
    file.request_reopening();
    file.write("two\n");
    CHECK(file.state.reopening_error.exchange(0) == ENOENT);
    CHECK(file.state.reopening_error.exchange(0) == 0);
    CHECK(read_text(folder.file("elsewhere/records")) == "one\ntwo\n");
    file.request_reopening();
    file.do_due_work({}); // also without new data
    CHECK(file.state.reopening_error.exchange(0) == ENOENT);
}

TEST_CASE("if the file is emptied while it is open, further data is written at its start") {
    const TemporaryFolder folder;
    FileOutput file{folder.file("records")};
    file.write("one\n");
    std::filesystem::resize_file(folder.file("records"), 0);
    file.write("two\n");
    CHECK(read_text(folder.file("records")) == "two\n");
}

TEST_CASE("a capture that continues in another pipe has a file header and complete blocks there") {
    const TemporaryFolder folder;
    const std::string head = capture_format().file_header();
    // The file header of a capture is a block; some of its bytes look like ends of lines.
    const std::string block{"\x06\0\0\0\x14\0\0\0a\nb\n\n\n\nc\x14\0\0\0", 20};
    const std::string path = folder.file("pipe");
    std::array<int, 2> readers{};
    const auto make_pipe = [&path] {
        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    };
    readers[0] = make_pipe();
    {
        FileOutput file{path, capture_format()};
        file.write(block);
        std::filesystem::remove(path);
        readers[1] = make_pipe();
        file.request_reopening();
        file.write(block + block);
    }
    const auto read_all = [](int reader) {
        std::array<char, 4096> text{};
        const ssize_t read = ::read(reader, text.data(), text.size());
        ::close(reader);
        return std::string{text.data(), static_cast<std::size_t>(std::max<ssize_t>(read, 0))};
    };
    const std::string first = read_all(readers[0]);
    const std::string second = read_all(readers[1]);
    CHECK((first == head + block));
    CHECK((second == head + block + block));
}

using tw::store::QueuedOutput;

namespace {

/// Stores the written data. Each call of write() waits for unblock_writes().
class BlockingOutput final : public StoringOutput {
  public:
    explicit BlockingOutput(bool open) : is_open_{open} {}

    void write(std::string_view block) override {
        std::unique_lock lock{mutex_};
        ++write_count_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return is_open_; });
        StoringOutput::write(block);
    }

    void unblock_writes() {
        const std::scoped_lock lock{mutex_};
        is_open_ = true;
        changed_.notify_all();
    }

    /// Waits until write() was called.
    void await_write() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return write_count_ != 0; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_open_;
    int write_count_ = 0;
};

} // namespace

TEST_CASE("all queued data is written in order before the queue ends") {
    BlockingOutput blocking{true};
    std::string expected;
    {
        QueuedOutput queue{blocking};
        for (int i = 0; i < 1000; ++i) {
            const std::string line = std::to_string(i) + '\n';
            expected += line;
            queue.write(line);
        }
    }
    CHECK(blocking.text() == expected);
}

TEST_CASE("a queue without data ends") {
    BlockingOutput blocking{false};
    const QueuedOutput queue{blocking};
    CHECK(queue.num_dropped_entries() == 0);
}

TEST_CASE("while the output blocks, callers do not wait, and blocks that do not fit are dropped "
          "and counted") {
    constexpr std::size_t kBlocks = 8;
    BlockingOutput blocking{false};
    std::size_t queued = 0;
    {
        QueuedOutput queue{blocking};
        queue.write("first\n");
        blocking.await_write(); // all further data stays in the queue
        std::string block(QueuedOutput::kMaxQueueBytes / kBlocks, 'x');
        block.back() = '\n';
        for (std::size_t i = 0; i < kBlocks; ++i) {
            queue.write(block);
            queued += block.size();
        }
        CHECK(queue.num_dropped_entries() == 0);
        queue.write("a\nb\n");
        CHECK(queue.num_dropped_entries() == 2);
        queue.write("");
        CHECK(queue.num_dropped_entries() == 2);
        queue.write(block);
        CHECK(queue.num_dropped_entries() == 3);
        blocking.unblock_writes();
    }
    // The notice about lost data follows after the queued data.
    const std::string& text = blocking.text();
    const std::size_t end = std::string_view{"first\n"}.size() + queued;
    REQUIRE(text.size() > end);
    CHECK_FALSE(contains(text, "a\n"));
    CHECK(text.find(R"("type":"records_lost","session":0,"lost":3,"since":")", end) !=
          std::string::npos);
    CHECK(text.ends_with("\"cause\":\"too_slow\"}\n"));
}

TEST_CASE("a block longer than the queue is dropped, and the next block is written") {
    BlockingOutput blocking{true};
    {
        QueuedOutput queue{blocking};
        queue.write(std::string(QueuedOutput::kMaxQueueBytes, 'x') + '\n');
        CHECK(queue.num_dropped_entries() == 1);
        queue.write("small\n");
    }
    CHECK(blocking.text().find(R"("lost":1,)") < blocking.text().find("small\n"));
    CHECK(blocking.text().ends_with("\nsmall\n"));
}

TEST_CASE("blocks of several threads are not mixed") {
    constexpr std::size_t kThreads = 4;
    constexpr std::size_t kBlocks = 500;
    constexpr std::size_t kLength = 60;
    BlockingOutput blocking{true};
    {
        QueuedOutput queue{blocking};
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < kThreads; ++i) {
            threads.emplace_back([&queue, i] {
                const std::string line = std::string(kLength, static_cast<char>('a' + i)) + '\n';
                for (std::size_t k = 0; k < kBlocks; ++k) {
                    queue.write(line);
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        CHECK(queue.num_dropped_entries() == 0);
    }
    const std::string& text = blocking.text();
    REQUIRE(text.size() == kThreads * kBlocks * (kLength + 1));
    bool whole = true;
    for (std::size_t at = 0; at < text.size(); at += kLength + 1) {
        whole = whole && text.find_first_not_of(text[at], at) == at + kLength;
    }
    CHECK(whole);
}

TEST_CASE("data waits while the output accepts none, and is written later") {
    StoringOutput target;
    target.set_accepts_data(false);
    {
        QueuedOutput queue{target};
        queue.write("one\n");
        target.await_due_work(2);
        CHECK(target.text().empty());
        target.set_accepts_data(true);
        target.await_text("one\n");
        queue.write("two\n");
    }
    CHECK(target.text() == "one\ntwo\n");
}

TEST_CASE("data that the output does not accept at the end is lost and counted") {
    StoringOutput target;
    std::atomic<std::uint64_t> progress{0};
    QueuedOutput queue{target, 0, &progress};
    queue.write("one\n");
    target.await_text("one\n");
    target.set_accepts_data(false);
    queue.write("two\nthree\n");
    queue.finish_writing();
    CHECK(queue.num_dropped_entries() == 2);
    CHECK(target.text() == "one\n");
    CHECK(target.is_finished());
    CHECK(
        contains(target.loss_notice(), R"("type":"records_lost","session":0,"lost":2,"since":")"));
    CHECK(progress == 4);
}

TEST_CASE("while nothing can be written, all dropped data counts as one loss") {
    StoringOutput target;
    QueuedOutput queue{target};
    target.set_accepts_data(false);
    queue.write("one\n");
    target.await_due_work(2); // the queue's thread now waits to write "one"
    const std::int64_t waits = tw::base::now_utc();
    queue.write(std::string(QueuedOutput::kMaxQueueBytes, 'x') + '\n');
    queue.write("small, but later\n");
    CHECK(queue.num_dropped_entries() == 2);
    queue.finish_writing();
    CHECK(queue.num_dropped_entries() == 3);
    CHECK(target.text().empty());
    CHECK(contains(target.loss_notice(), R"("lost":3,)"));
    const auto text_from_since = [](const std::string& mark) {
        return mark.substr(mark.find("since"));
    };
    const RecordingLoss from_then{.since = waits, .cause = "too_slow"};
    CHECK(text_from_since(target.loss_notice()) <=
          text_from_since(record_line_format().loss_notice(from_then, 0)));
}

TEST_CASE("the next segment starts when all producers have advanced to it") {
    StoringOutput target{true};
    {
        QueuedOutput queue{target, 2};
        CHECK(queue.current_segment() == 1);
        queue.write_to_segment(1, "1\n");
        target.await_text("1\n");
        target.make_segment_due();
        target.await_due_work(3);
        CHECK(queue.current_segment() == 2);
        queue.advance_to_segment(2);
        queue.write_to_segment(2, "4\n");
        queue.write_to_segment(1, "2\n"); // data of a producer that has not advanced yet
        target.await_text("1\n2\n");
        target.await_due_work(3);
        CHECK(target.text() == "1\n2\n");
        queue.advance_to_segment(2);
        target.await_text("1\n2\n---\n4\n");
        queue.write("5\n");
    }
    CHECK(target.text() == "1\n2\n---\n4\n5\n");
}

TEST_CASE("a segment that was announced is started even at the end") {
    StoringOutput target{true};
    {
        QueuedOutput queue{target, 2};
        target.make_segment_due();
        target.await_due_work(3);
        queue.advance_to_segment(2);
        queue.write_to_segment(2, "2\n");
        queue.write_to_segment(1, "1\n");
    }
    CHECK(target.text() == "1\n---\n2\n");
}

TEST_CASE("a text is divided only between its entries") {
    const std::string one = capture_blocks({10});
    const std::string two = capture_blocks({10, 500});

    struct Row {
        const char* name;
        const RecordingFormat* format;
        std::string text;
        std::size_t first; ///< number of bytes of the first entry
        std::uint64_t count;
    };

    const Row rows[] = {
        {"lines", &record_line_format(), "one\ntwo\n", 4, 2},
        {"one line", &record_line_format(), "one\n", 4, 1},
        {"packets", &capture_format(), two, one.size(), 2},
        {"a head, then packets", &capture_format(), capture_format().file_header() + two, 0, 2},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(row.format->count_entries(row.text) == row.count);
        CHECK(row.format->size_of_complete_entries(row.text) == row.text.size());
        CHECK(row.format->size_of_whole_entries(row.text, row.text.size()) == row.text.size());
        if (row.first != 0) {
            CHECK(row.format->size_of_whole_entries(row.text, 1) == row.first);
            CHECK(row.format->size_of_whole_entries(row.text, row.first) == row.first);
        }
        for (std::size_t cut = 0; cut < row.text.size(); ++cut) {
            const std::string_view torn = std::string_view{row.text}.substr(0, cut);
            const std::size_t whole = row.format->size_of_complete_entries(torn);
            REQUIRE(whole <= cut);
            REQUIRE(row.format->size_of_complete_entries(torn.substr(0, whole)) == whole);
            REQUIRE((whole == 0 ||
                     row.format->size_of_complete_entries(torn.substr(0, whole - 1)) < whole));
        }
    }
}

TEST_CASE("invalid blocks of a capture are not counted, whatever lengths they contain") {
    for (const std::string& text :
         {std::string(100, '\0'), std::string(100, '\xff'), std::string{"\n\r\r\n"},
          std::string{"\x06\0\0\0\x0b\0\0\0aaa", 11},
          std::string{"\x06\0\0\0\xfc\xff\xff\xff", 8}}) {
        CAPTURE(text);
        CHECK(capture_format().count_entries(text) == 0);
        CHECK(capture_format().size_of_complete_entries(text) == 0);
        CHECK(capture_format().size_of_whole_entries(text, 1) == text.size());
    }
}

TEST_CASE(
    "a capture on a full disk contains only complete packets, and continues when there is room") {
    for (const char* const name : {"a.pcapng", "a.pcapng.zst"}) {
        CAPTURE(name);
        const bool packed = std::string_view{name}.ends_with(".zst");
        const TemporaryFolder folder;
        FaultyDisk disk;
        const std::string first = capture_blocks({100, 200});
        const std::string second = capture_blocks({300, 400, 500});
        Recording recording{{.path = folder.file(name),
                             .compressed = packed,
                             .format = &capture_format(),
                             .readers = AllowedReaders::owner},
                            Recording::StartMode::append,
                            disk};
        auto now = OutputFile::Clock::now();
        const auto advance_time = [&] { recording.do_due_work(now += std::chrono::seconds{2}); };
        recording.write(first);
        advance_time();
        disk.room = packed ? 20 : capture_blocks({300}).size() + 50;
        recording.write(second);
        advance_time();
        CHECK(recording.failed());
        if (!packed) {
            CHECK(read_text(folder.file(name)) ==
                  capture_format().file_header() + first + capture_blocks({300}));
        }
        recording.write(first); // this data is lost
        CHECK(recording.num_lost_entries() == 2);
        disk.room = UINT64_MAX;
        advance_time();
        CHECK(!recording.failed());
        recording.finish_writing();
        CHECK(recording.num_lost_entries() == 2);
        if (!packed) {
            CHECK(read_text(folder.file(name)) ==
                  fmt::format("{}{}{}", capture_format().file_header(), first, second));
        }
    }
}

TEST_CASE("a capture contains a notice about missing packets") {
    const std::string said = capture_format().loss_notice({.count = 12, .cause = "disk_full"}, 5);
    CHECK(contains(said, "twscope: 12 packets are missing here (disk_full)"));
    CHECK(capture_format().size_of_complete_entries(said) == said.size());
    CHECK(capture_format().count_entries(said) == 0);
    CHECK(contains(capture_format().loss_notice({.count = 1, .cause = "disk_full"}, 5),
                   "twscope: 1 packet is missing here (disk_full)"));
}
