// Covers: proxy/sink/file_output.cpp
#include "proxy/sink/file_output.h"
#include "tests/proxy/sink/kept_target.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using tw::sink::QueuedOutput;
using namespace tw::test;

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
    CHECK(queue.dropped() == 0);
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
        CHECK(queue.dropped() == 0);
        queue.write("a\nb\n");
        CHECK(queue.dropped() == 2);
        queue.write("");
        CHECK(queue.dropped() == 2);
        queue.write(block);
        CHECK(queue.dropped() == 3);
        gate.open();
    }
    // Behind all that was queued stands what is missing.
    const std::string& text = gate.text();
    const std::size_t end = std::string_view{"first\n"}.size() + queued;
    REQUIRE(text.size() > end);
    CHECK(text.find("a\n") == std::string::npos);
    CHECK(text.find(R"("type":"records_lost","session":0,"lost":3,"since":")", end) !=
          std::string::npos);
    CHECK(text.ends_with("\"cause\":\"too_slow\"}\n"));
}

TEST_CASE("a block longer than the queue is dropped, and what follows is written") {
    Gate gate{true};
    {
        QueuedOutput queue{gate};
        queue.write(std::string(QueuedOutput::kMaxQueueBytes, 'x') + '\n');
        CHECK(queue.dropped() == 1);
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
        CHECK(queue.dropped() == 0);
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
    queue.finish();
    CHECK(queue.dropped() == 2);
    CHECK(target.text() == "one\n");
    CHECK(target.finished());
    CHECK(progress == 4);
}

TEST_CASE("the next segment begins when all who make records have arrived there") {
    KeptTarget target{true};
    {
        QueuedOutput queue{target, 2};
        CHECK(queue.segment() == 1);
        queue.write_in(1, "1\n");
        target.await_text("1\n");
        target.want_cut();
        target.await_turns(3);
        CHECK(queue.segment() == 2);
        queue.reach_segment(2);
        queue.write_in(2, "4\n");
        queue.write_in(1, "2\n"); // of one that has not arrived yet
        target.await_text("1\n2\n");
        target.await_turns(3);
        CHECK(target.text() == "1\n2\n");
        queue.reach_segment(2);
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
        queue.reach_segment(2);
        queue.write_in(2, "2\n");
        queue.write_in(1, "1\n");
    }
    CHECK(target.text() == "1\n---\n2\n");
}
