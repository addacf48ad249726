#pragma once

#include "proxy/sink/record_target.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::sink {

/// A file, or standard output for "-". Opened once and written to, behind whatever else is written
/// there; on the first error it stops, until it goes on in another one: what could not be written is
/// counted. A pipe's reader is waited for, for some seconds at first, and later until `hurry`.
class FileOutput final : public RecordTarget {
  public:
    /// How long it takes until somebody reads a pipe: whoever made it starts both.
    static constexpr std::chrono::seconds kReaderTime{20};

    /// What was in the file is gone.
    /// Errors: throws std::system_error when the file cannot be opened, ETIMEDOUT for a pipe that nobody
    /// reads.
    explicit FileOutput(const std::string& path, const Units& units = record_lines(),
                        std::chrono::milliseconds reader_time = kReaderTime);
    ~FileOutput() override;
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;
    FileOutput(FileOutput&&) = delete;
    FileOutput& operator=(FileOutput&&) = delete;

    void write(std::string_view block) override;

    void go_on_in(int descriptor) override;

    /// What go_on_in takes: the file of this name behind what is in it, made when it is not there.
    /// Negative, with errno, when it cannot be opened; nobody is waited for.
    [[nodiscard]] static int open_again(const std::string& path);

    void go_behind_last_unit() override {}

    [[nodiscard]] const Units& units() const override { return *units_; }

    /// From now on a reader that takes nothing for a while has left.
    void hurry() override { hurried_ = true; }

    [[nodiscard]] const std::string& path() const override { return path_; }

    [[nodiscard]] int error() const override { return error_; }

    [[nodiscard]] std::uint64_t lost() const override { return lost_; }

  private:
    void learn_kind();
    [[nodiscard]] bool wait_for_reader() const;
    [[nodiscard]] std::size_t room() const;
    void put(std::string_view block);
    void change_file();

    std::string path_;
    const Units* units_;
    int descriptor_ = -1;
    bool waits_ = false;        ///< for who reads it: a pipe, a terminal
    std::size_t capacity_ = 0;  ///< bytes that it takes while nothing waits in it
    bool whole_ = true;         ///< what was written ends with a whole unit
    std::atomic<int> next_{-1}; ///< to go on in; negative: none
    std::atomic<bool> hurried_{false};
    std::atomic<int> error_{0};
    std::atomic<std::uint64_t> lost_{0};
};

} // namespace tw::sink
