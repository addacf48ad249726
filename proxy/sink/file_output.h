#pragma once

#include "proxy/sink/output.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::sink {

/// A file, or standard output for "-". Open once, write, and on the first error stop for good: what
/// could not be written is counted.
class FileOutput final : public Output {
  public:
    /// Errors: throws std::system_error when the file cannot be opened.
    explicit FileOutput(const std::string& path);
    ~FileOutput() override;
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;
    FileOutput(FileOutput&&) = delete;
    FileOutput& operator=(FileOutput&&) = delete;

    void write(std::string_view block) override;

    /// As it was opened.
    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] bool failed() const { return error_ != 0; }

    /// errno of the failure, 0 while all is well. From any thread, as the others that only ask.
    [[nodiscard]] int error() const { return error_; }

    [[nodiscard]] std::uint64_t lost_lines() const { return lost_lines_; }

  private:
    std::string path_;
    int descriptor_ = -1;
    std::atomic<int> error_{0};
    std::atomic<std::uint64_t> lost_lines_{0};
};

} // namespace tw::sink
