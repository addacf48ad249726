#pragma once

#include "proxy/store/file_output.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>

namespace tw::test {

/// Stores the written data in memory, with a line `---` at the start of each segment. A test sets
/// when it accepts data and when the next segment is due.
class StoringOutput : public store::OutputFile {
  public:
    explicit StoringOutput(bool has_segments = false)
        : OutputFile{""}, has_segments_{has_segments} {}

    void write(std::string_view block) override {
        const std::scoped_lock lock{mutex_};
        text_.append(block);
        changed_.notify_all();
    }

    void do_due_work(Clock::time_point /*now*/) override {
        const std::scoped_lock lock{mutex_};
        ++due_work_count_;
        changed_.notify_all();
    }

    [[nodiscard]] bool accepts_data() const override {
        const std::scoped_lock lock{mutex_};
        return accepts_data_;
    }

    [[nodiscard]] bool has_segments() const override { return has_segments_; }

    [[nodiscard]] bool is_segment_due(Clock::time_point /*now*/) override {
        const std::scoped_lock lock{mutex_};
        return is_segment_due_;
    }

    bool start_segment() override {
        write("---\n");
        const std::scoped_lock lock{mutex_};
        is_segment_due_ = false;
        return true;
    }

    void finish_writing() override { is_finished_ = true; }

    void write_loss_notice(std::string_view entry) override { loss_notice_ = entry; }

    void set_accepts_data(bool ready) {
        const std::scoped_lock lock{mutex_};
        accepts_data_ = ready;
    }

    void make_segment_due() {
        const std::scoped_lock lock{mutex_};
        is_segment_due_ = true;
    }

    /// Waits for this many further calls of do_due_work().
    void await_due_work(int calls) {
        std::unique_lock lock{mutex_};
        const int enough = due_work_count_ + calls;
        changed_.wait(lock, [&] { return due_work_count_ >= enough; });
    }

    void await_text(std::string_view text) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return text_ == text; });
    }

    [[nodiscard]] std::string text() const {
        const std::scoped_lock lock{mutex_};
        return text_;
    }

    /// Returns whether finish_writing() was called. Call this function after the writing thread has
    /// ended.
    [[nodiscard]] bool is_finished() const { return is_finished_; }

    /// Returns the argument of write_loss_notice(). Call this function after the writing thread has
    /// ended.
    [[nodiscard]] const std::string& loss_notice() const { return loss_notice_; }

  private:
    bool has_segments_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool accepts_data_ = true;
    bool is_segment_due_ = false;
    bool is_finished_ = false;
    int due_work_count_ = 0;
    std::string text_;
    std::string loss_notice_;
};

} // namespace tw::test
