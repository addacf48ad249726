#include "proxy/sink/queued_output.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using tw::sink::QueuedOutput;

namespace {

/// Keeps what it gets, and holds up whoever writes while it is shut.
class Gate final : public tw::sink::Output {
  public:
    explicit Gate(bool open) : open_{open} {}

    void write(std::string_view block) override {
        std::unique_lock lock{mutex_};
        ++entered_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_; });
        text_.append(block);
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

    /// Only when nobody writes any more.
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_;
    int entered_ = 0;
    std::string text_;
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
    CHECK(queue.dropped_lines() == 0);
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
        CHECK(queue.dropped_lines() == 0);
        queue.write("a\nb\n");
        CHECK(queue.dropped_lines() == 2);
        queue.write("");
        CHECK(queue.dropped_lines() == 2);
        queue.write(block);
        CHECK(queue.dropped_lines() == 3);
        gate.open();
    }
    CHECK(gate.text().size() == std::string_view{"first\n"}.size() + queued);
    CHECK(gate.text().find("a\n") == std::string::npos);
}

TEST_CASE("a block longer than the queue is dropped, and what follows is written") {
    Gate gate{true};
    {
        QueuedOutput queue{gate};
        queue.write(std::string(QueuedOutput::kMaxQueueBytes, 'x') + '\n');
        CHECK(queue.dropped_lines() == 1);
        queue.write("small\n");
    }
    CHECK(gate.text() == "small\n");
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
        CHECK(queue.dropped_lines() == 0);
    }
    const std::string& text = gate.text();
    REQUIRE(text.size() == kThreads * kBlocks * (kLength + 1));
    bool whole = true;
    for (std::size_t at = 0; at < text.size(); at += kLength + 1) {
        whole = whole && text.find_first_not_of(text[at], at) == at + kLength;
    }
    CHECK(whole);
}
