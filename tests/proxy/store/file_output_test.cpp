#include "proxy/base/clock.h"
#include "proxy/store/file_output.h"
#include "proxy/store/recording.h"
#include "tests/proxy/store/capture_text.h"
#include "tests/proxy/store/faulty_disk.h"
#include "tests/proxy/store/kept_target.h"
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
        CHECK(file.num_lost_units() == 0);
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

TEST_CASE(
    "a pipe's reader is waited for, but not for ever, and not at all when it is opened again") {
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

TEST_CASE("a full disk ends the writing for good, and the lines are counted") {
    FileOutput file{"/dev/full"};
    CHECK_FALSE(file.failed());
    file.write("one\ntwo\n");
    CHECK(file.failed());
    CHECK(file.error() == ENOSPC);
    CHECK(file.num_lost_units() == 2);
    file.write("three\n");
    file.write("the rest of a line");
    CHECK(file.error() == ENOSPC);
    CHECK(file.num_lost_units() == 3);
}

TEST_CASE("a block that fits in part counts as lost") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records.jsonl");
    constexpr rlim_t kLimit = 4096;
    {
        FileOutput file{path};
        const FullDisk disk{kLimit};
        file.write(std::string(kLimit - 2, 'a') + '\n');
        CHECK(file.num_lost_units() == 0);
        file.write("b\nc\n");
        CHECK(file.error() == EFBIG);
        // Of the first line one byte fitted: it is as lost as the second.
        CHECK(file.num_lost_units() == 2);
    }
    CHECK(std::filesystem::file_size(path) == kLimit);
}

TEST_CASE(
    "a reader that stalls is given up after stop_waiting_for_reader(), and its lines are counted") {
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
    CHECK(file.num_lost_units() + whole == kLines);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("a reader that left costs lines and no signal") {
    const auto handler = std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    FileOutput file{"/proc/self/fd/" + std::to_string(ends[1])};
    ::close(ends[0]);
    file.write("one\ntwo\n");
    CHECK(file.error() == EPIPE);
    CHECK(file.num_lost_units() == 2);
    ::close(ends[1]);
    std::signal(SIGPIPE, handler);
}

TEST_CASE("a file that is changed for another ends with a whole line, and so does the next begin") {
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

TEST_CASE("after a failure it goes on in another file, and what was lost stays counted") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records");
    std::filesystem::create_symlink("/dev/full", path);
    FileOutput file{path};
    file.write("one\ntwo\nthr");
    CHECK(file.failed());
    file.write("ee\n");
    file.write("four\nfi");
    CHECK(file.num_lost_units() == 4);
    std::filesystem::remove(path);
    file.request_reopening();
    file.write("ve\nsix\n");
    CHECK_FALSE(file.failed());
    CHECK(file.num_lost_units() == 5);
    CHECK(read_text(path) == "six\n");
}

TEST_CASE("a path that cannot be opened again is reported, and the open file goes on") {
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
    file.on_time({}); // also without new data
    CHECK(file.state.reopening_error.exchange(0) == ENOENT);
}

TEST_CASE("who empties the file while it is open finds what comes at its beginning") {
    const TemporaryFolder folder;
    FileOutput file{folder.file("records")};
    file.write("one\n");
    std::filesystem::resize_file(folder.file("records"), 0);
    file.write("two\n");
    CHECK(read_text(folder.file("records")) == "two\n");
}

TEST_CASE("a capture that goes on in another pipe has its head there, and whole blocks in both") {
    const TemporaryFolder folder;
    const std::string head = capture_format().file_header();
    // A section's head is a block, and of many bytes that look like a line's end.
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

/// Keeps what it gets, and holds up whoever writes while it is shut.
class Gate final : public KeptTarget {
  public:
    explicit Gate(bool open) : open_{open} {}

    void write(std::string_view block) override {
        std::unique_lock lock{mutex_};
        ++entered_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_; });
        KeptTarget::write(block);
    }

    void open() {
        const std::scoped_lock lock{mutex_};
        open_ = true;
        changed_.notify_all();
    }

    /// Until somebody stands before the gate.
    void await_writer() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return entered_ != 0; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_;
    int entered_ = 0;
};

} // namespace

TEST_CASE("what is queued is written in order, all of it, before the end") {
    Gate gate{true};
    std::string expected;
    {
        QueuedOutput queue{gate};
        for (int i = 0; i < 1000; ++i) {
            const std::string line = std::to_string(i) + '\n';
            expected += line;
            queue.write(line);
        }
    }
    CHECK(gate.text() == expected);
}

TEST_CASE("a queue that nothing is written to ends") {
    Gate gate{false};
    const QueuedOutput queue{gate};
    CHECK(queue.num_dropped_units() == 0);
}

TEST_CASE(
    "while the target is stuck, nobody waits: blocks that do not fit are dropped and counted") {
    constexpr std::size_t kBlocks = 8;
    Gate gate{false};
    std::size_t queued = 0;
    {
        QueuedOutput queue{gate};
        queue.write("first\n");
        gate.await_writer(); // from here on all stays in the queue
        std::string block(QueuedOutput::kMaxQueueBytes / kBlocks, 'x');
        block.back() = '\n';
        for (std::size_t i = 0; i < kBlocks; ++i) {
            queue.write(block);
            queued += block.size();
        }
        CHECK(queue.num_dropped_units() == 0);
        queue.write("a\nb\n");
        CHECK(queue.num_dropped_units() == 2);
        queue.write("");
        CHECK(queue.num_dropped_units() == 2);
        queue.write(block);
        CHECK(queue.num_dropped_units() == 3);
        gate.open();
    }
    // Behind all that was queued stands what is missing.
    const std::string& text = gate.text();
    const std::size_t end = std::string_view{"first\n"}.size() + queued;
    REQUIRE(text.size() > end);
    CHECK_FALSE(contains(text, "a\n"));
    CHECK(text.find(R"("type":"records_lost","session":0,"lost":3,"since":")", end) !=
          std::string::npos);
    CHECK(text.ends_with("\"cause\":\"too_slow\"}\n"));
}

TEST_CASE("a block longer than the queue is dropped, and what follows is written") {
    Gate gate{true};
    {
        QueuedOutput queue{gate};
        queue.write(std::string(QueuedOutput::kMaxQueueBytes, 'x') + '\n');
        CHECK(queue.num_dropped_units() == 1);
        queue.write("small\n");
    }
    CHECK(gate.text().find(R"("lost":1,)") < gate.text().find("small\n"));
    CHECK(gate.text().ends_with("\nsmall\n"));
}

TEST_CASE("blocks of several threads stay whole") {
    constexpr std::size_t kThreads = 4;
    constexpr std::size_t kBlocks = 500;
    constexpr std::size_t kLength = 60;
    Gate gate{true};
    {
        QueuedOutput queue{gate};
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
        CHECK(queue.num_dropped_units() == 0);
    }
    const std::string& text = gate.text();
    REQUIRE(text.size() == kThreads * kBlocks * (kLength + 1));
    bool whole = true;
    for (std::size_t at = 0; at < text.size(); at += kLength + 1) {
        whole = whole && text.find_first_not_of(text[at], at) == at + kLength;
    }
    CHECK(whole);
}

TEST_CASE("a target that is busy is handed nothing, loses nothing, and is asked again") {
    KeptTarget target;
    target.set_ready(false);
    {
        QueuedOutput queue{target};
        queue.write("one\n");
        target.await_turns(2);
        CHECK(target.text().empty());
        target.set_ready(true);
        target.await_text("one\n");
        queue.write("two\n");
    }
    CHECK(target.text() == "one\ntwo\n");
}

TEST_CASE("what a target does not take at the end is lost, and counted") {
    KeptTarget target;
    std::atomic<std::uint64_t> progress{0};
    QueuedOutput queue{target, 0, &progress};
    queue.write("one\n");
    target.await_text("one\n");
    target.set_ready(false);
    queue.write("two\nthree\n");
    queue.finish_writing();
    CHECK(queue.num_dropped_units() == 2);
    CHECK(target.text() == "one\n");
    CHECK(target.finished());
    CHECK(contains(target.last(), R"("type":"records_lost","session":0,"lost":2,"since":")"));
    CHECK(progress == 4);
}

TEST_CASE("while nothing can be written, what is dropped is one gap, which is counted at the end") {
    KeptTarget target;
    QueuedOutput queue{target};
    target.set_ready(false);
    queue.write("one\n");
    target.await_turns(2); // it waits with "one"
    const std::int64_t waits = tw::base::now_utc();
    queue.write(std::string(QueuedOutput::kMaxQueueBytes, 'x') + '\n');
    queue.write("small, but later\n");
    CHECK(queue.num_dropped_units() == 2);
    queue.finish_writing();
    CHECK(queue.num_dropped_units() == 3);
    CHECK(target.text().empty());
    CHECK(contains(target.last(), R"("lost":3,)"));
    const auto since = [](const std::string& mark) { return mark.substr(mark.find("since")); };
    const RecordingLoss from_then{.since = waits, .cause = "too_slow"};
    CHECK(since(target.last()) <= since(record_line_format().loss_notice(from_then, 0)));
}

TEST_CASE("the next segment begins when all who make records have arrived there") {
    KeptTarget target{true};
    {
        QueuedOutput queue{target, 2};
        CHECK(queue.current_segment() == 1);
        queue.write_to_segment(1, "1\n");
        target.await_text("1\n");
        target.want_cut();
        target.await_turns(3);
        CHECK(queue.current_segment() == 2);
        queue.advance_to_segment(2);
        queue.write_to_segment(2, "4\n");
        queue.write_to_segment(1, "2\n"); // of one that has not arrived yet
        target.await_text("1\n2\n");
        target.await_turns(3);
        CHECK(target.text() == "1\n2\n");
        queue.advance_to_segment(2);
        target.await_text("1\n2\n---\n4\n");
        queue.write("5\n");
    }
    CHECK(target.text() == "1\n2\n---\n4\n5\n");
}

TEST_CASE("at the end a segment that was announced is begun all the same") {
    KeptTarget target{true};
    {
        QueuedOutput queue{target, 2};
        target.want_cut();
        target.await_turns(3);
        queue.advance_to_segment(2);
        queue.write_to_segment(2, "2\n");
        queue.write_to_segment(1, "1\n");
    }
    CHECK(target.text() == "1\n---\n2\n");
}

TEST_CASE("a text is cut between its units only") {
    const std::string one = packets({10});
    const std::string two = packets({10, 500});

    struct Row {
        const char* name;
        const RecordingFormat* format;
        std::string text;
        std::size_t first; ///< bytes of its first unit
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
        CHECK(row.format->count_units(row.text) == row.count);
        CHECK(row.format->size_of_complete_units(row.text) == row.text.size());
        CHECK(row.format->size_of_first_units(row.text, row.text.size()) == row.text.size());
        if (row.first != 0) {
            CHECK(row.format->size_of_first_units(row.text, 1) == row.first);
            CHECK(row.format->size_of_first_units(row.text, row.first) == row.first);
        }
        for (std::size_t cut = 0; cut < row.text.size(); ++cut) {
            const std::string_view torn = std::string_view{row.text}.substr(0, cut);
            const std::size_t whole = row.format->size_of_complete_units(torn);
            REQUIRE(whole <= cut);
            REQUIRE(row.format->size_of_complete_units(torn.substr(0, whole)) == whole);
            REQUIRE((whole == 0 ||
                     row.format->size_of_complete_units(torn.substr(0, whole - 1)) < whole));
        }
    }
}

TEST_CASE("what are no blocks are counted as none, whatever lengths they claim") {
    for (const std::string& text :
         {std::string(100, '\0'), std::string(100, '\xff'), std::string{"\n\r\r\n"},
          std::string{"\x06\0\0\0\x0b\0\0\0aaa", 11},
          std::string{"\x06\0\0\0\xfc\xff\xff\xff", 8}}) {
        CAPTURE(text);
        CHECK(capture_format().count_units(text) == 0);
        CHECK(capture_format().size_of_complete_units(text) == 0);
        CHECK(capture_format().size_of_first_units(text, 1) == text.size());
    }
}

TEST_CASE("a capture on a disk that is full holds whole packets, and goes on with what waited") {
    for (const char* const name : {"a.pcapng", "a.pcapng.zst"}) {
        CAPTURE(name);
        const bool packed = std::string_view{name}.ends_with(".zst");
        const TemporaryFolder folder;
        FaultyDisk disk;
        const std::string first = packets({100, 200});
        const std::string second = packets({300, 400, 500});
        Recording recording{{.path = folder.file(name),
                             .compressed = packed,
                             .format = &capture_format(),
                             .readers = AllowedReaders::owner},
                            Recording::StartMode::append,
                            disk};
        auto now = OutputFile::Clock::now();
        const auto pass = [&] { recording.on_time(now += std::chrono::seconds{2}); };
        recording.write(first);
        pass();
        disk.room = packed ? 20 : packets({300}).size() + 50;
        recording.write(second);
        pass();
        CHECK(recording.failed());
        if (!packed) {
            CHECK(read_text(folder.file(name)) ==
                  capture_format().file_header() + first + packets({300}));
        }
        recording.write(first); // and is lost
        CHECK(recording.num_lost_units() == 2);
        disk.room = UINT64_MAX;
        pass();
        CHECK(!recording.failed());
        recording.finish_writing();
        CHECK(recording.num_lost_units() == 2);
        if (!packed) {
            CHECK(read_text(folder.file(name)) ==
                  fmt::format("{}{}{}", capture_format().file_header(), first, second));
        }
    }
}

TEST_CASE("what is missing in a capture stands there") {
    const std::string said = capture_format().loss_notice({.count = 12, .cause = "disk_full"}, 5);
    CHECK(contains(said, "twscope: 12 packets are missing here (disk_full)"));
    CHECK(capture_format().size_of_complete_units(said) == said.size());
    CHECK(capture_format().count_units(said) == 0);
    CHECK(contains(capture_format().loss_notice({.count = 1, .cause = "disk_full"}, 5),
                   "twscope: 1 packet is missing here (disk_full)"));
}
