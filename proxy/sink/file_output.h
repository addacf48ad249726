#pragma once

#include "proxy/sink/output.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::sink {

/// A file, or standard output for "-". Opened once and written to, behind whatever else is written
/// there; on the first error it stops, until it goes on in another one: what could not be written is
/// counted. A pipe whose reader stalls is waited for until `hurry`.
class FileOutput final : public Output {
  public:
    enum class Begin : std::uint8_t {
        empty,  ///< what was in the file is gone
        behind, ///< behind the last whole line in it
        shared, ///< at its end; another process writes there still
    };

    /// Errors: throws std::system_error when the file cannot be opened.
    explicit FileOutput(const std::string& path, Begin begin = Begin::empty);
    ~FileOutput() override;
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;
    FileOutput(FileOutput&&) = delete;
    FileOutput& operator=(FileOutput&&) = delete;

    void write(std::string_view block) override;

    /// Goes on in another file, which it takes over, from the next line on: what was wrong with the
    /// one before is forgotten, but not what was lost. From any thread.
    void go_on_in(int descriptor);

    /// What go_on_in takes: the file of this name behind what is in it, made when it is not there.
    /// Negative, with errno, when it cannot be opened.
    [[nodiscard]] static int open_again(const std::string& path);
    /// Cuts off a line that was never finished. Nobody else may write there any more.
    void go_behind_last_line();

    /// From now on a reader that takes nothing for a while has left. From any thread.
    void hurry() { hurried_ = true; }

    /// As it was opened.
    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] bool failed() const { return error_ != 0; }

    /// errno of the failure, 0 while all is well. From any thread, as the others that only ask.
    [[nodiscard]] int error() const { return error_; }

    [[nodiscard]] std::uint64_t lost_lines() const { return lost_lines_; }

  private:
    [[nodiscard]] bool wait_for_reader() const;
    void put(std::string_view block);
    void change_file();

    std::string path_;
    int descriptor_ = -1;
    bool regular_ = true;       ///< a file on a disk: nobody reads it as it is written
    bool whole_ = true;         ///< what was written ends with a line's end
    std::atomic<int> next_{-1}; ///< to go on in; negative: none
    std::atomic<bool> hurried_{false};
    std::atomic<int> error_{0};
    std::atomic<std::uint64_t> lost_lines_{0};
};

} // namespace tw::sink
