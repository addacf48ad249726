#pragma once

#include "proxy/store/file_output.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>

namespace tw::test {

/// Keeps what it gets, with `---` where it was cut; busy or wanting a cut when it is told to be.
class KeptTarget : public store::OutputFile {
  public:
    explicit KeptTarget(bool segmented = false) : OutputFile{""}, segmented_{segmented} {}

    void write(std::string_view block) override {
        const std::scoped_lock lock{mutex_};
        text_.append(block);
        changed_.notify_all();
    }

    void on_time(Clock::time_point /*now*/) override {
        const std::scoped_lock lock{mutex_};
        ++turns_;
        changed_.notify_all();
    }

    [[nodiscard]] bool accepts_data() const override {
        const std::scoped_lock lock{mutex_};
        return ready_;
    }

    [[nodiscard]] bool has_segments() const override { return segmented_; }

    [[nodiscard]] bool is_segment_due(Clock::time_point /*now*/) override {
        const std::scoped_lock lock{mutex_};
        return cut_wanted_;
    }

    bool start_segment() override {
        write("---\n");
        const std::scoped_lock lock{mutex_};
        cut_wanted_ = false;
        return true;
    }

    void finish_writing() override { finished_ = true; }

    void write_loss_notice(std::string_view unit) override { last_ = unit; }

    void set_ready(bool ready) {
        const std::scoped_lock lock{mutex_};
        ready_ = ready;
    }

    void want_cut() {
        const std::scoped_lock lock{mutex_};
        cut_wanted_ = true;
    }

    /// Until it has been asked so many more times whether there is something to do.
    void await_turns(int turns) {
        std::unique_lock lock{mutex_};
        const int enough = turns_ + turns;
        changed_.wait(lock, [&] { return turns_ >= enough; });
    }

    void await_text(std::string_view text) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return text_ == text; });
    }

    [[nodiscard]] std::string text() const {
        const std::scoped_lock lock{mutex_};
        return text_;
    }

    /// Only when nobody writes any more.
    [[nodiscard]] bool finished() const { return finished_; }

    /// The unit about what was lost. Only when nobody writes any more.
    [[nodiscard]] const std::string& last() const { return last_; }

  private:
    bool segmented_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool ready_ = true;
    bool cut_wanted_ = false;
    bool finished_ = false;
    int turns_ = 0;
    std::string text_;
    std::string last_;
};

} // namespace tw::test
