#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tw::sink {

/// What a file begins with, unpacked where it is compressed; "-": standard input. It is only looked at: who
/// reads the file, a pipe, too, still finds all of it.
class FileBegin {
  public:
    /// Waits until a pipe holds something. Nothing of a pipe with a name in a folder, and of what cannot be
    /// read: who reads it says why.
    FileBegin(const std::string& path, std::size_t size);
    ~FileBegin();
    FileBegin(const FileBegin&) = delete;
    FileBegin& operator=(const FileBegin&) = delete;
    FileBegin(FileBegin&&) = delete;
    FileBegin& operator=(FileBegin&&) = delete;

    /// Fewer bytes than were asked for where there are no more, and of a pipe that is filled slowly.
    [[nodiscard]] std::string_view bytes() const { return bytes_; }

  private:
    int file_; ///< kept open: the writer of a pipe must not find that nobody reads it
    std::string bytes_;
};

} // namespace tw::sink
