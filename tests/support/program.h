#pragma once

#include "tests/support/text.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace tw::test {

/// The exit code and the output of a program.
struct ProgramResult {
    int status = 0; ///< exit code; 128 plus the signal's number if a signal ended it
    std::string out;
    std::string err;
};

/// A running program with its output in files. The destructor kills it.
class Program {
  public:
    /// Precondition: `folder` exists; its files `out` and `err` are overwritten.
    Program(const std::string& path, const std::vector<std::string>& arguments,
            const std::string& folder);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void send_signal(int number) const;
    /// Whether the program has ended; finish() returns how.
    [[nodiscard]] bool has_ended() const;
    [[nodiscard]] std::string err() const;
    /// Waits until the program ends.
    [[nodiscard]] ProgramResult finish();

  private:
    std::string folder_;
    pid_t pid_ = -1;
};

/// Runs a program until it ends.
[[nodiscard]] ProgramResult run_program(const std::string& path,
                                        const std::vector<std::string>& arguments);

[[nodiscard]] std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);
/// Compresses a text with gzip(1).
[[nodiscard]] std::string gzipped(const std::string& text);

/// Returns how often a part occurs in a text.
[[nodiscard]] std::size_t count_of(std::string_view text, std::string_view part);

/// Checks `condition` repeatedly until it is true or the deadline passes. Returns whether it is
/// true.
[[nodiscard]] bool becomes_true_within(std::chrono::seconds deadline,
                                       const std::function<bool()>& condition);

/// An empty folder, which the destructor removes.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] std::string file(const std::string& name) const { return path_ + '/' + name; }

    /// Writes a file and returns its path.
    std::string write(const std::string& name, const std::string& text) const {
        write_text(file(name), text);
        return file(name);
    }

    /// The files in the folder, sorted by name.
    [[nodiscard]] std::vector<std::filesystem::path> files() const;

  private:
    std::string path_;
};

} // namespace tw::test
