#pragma once

#include "proxy/sink/unpacker.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tw::sink {

/// How a file that was read to its end ends.
enum class FileEnd : std::uint8_t {
    whole,
    within_frame, ///< in the middle of compressed data: it is being written, or was cut
    damaged,      ///< what comes is no compressed data; nothing more is read
    unreadable,   ///< the system cannot read it any further
};

/// What a file holds, unpacked where it begins as zstd or gzip does; "-": standard input. At its end it can be
/// asked again, when the file may have grown.
class ByteSource {
  public:
    /// Errors: throws std::system_error when it cannot be opened.
    explicit ByteSource(const std::string& path);
    ~ByteSource();
    ByteSource(const ByteSource&) = delete;
    ByteSource& operator=(const ByteSource&) = delete;
    ByteSource(ByteSource&&) = delete;
    ByteSource& operator=(ByteSource&&) = delete;

    /// Fills `room`, or as much of it as there is. 0: the end, for now; end() says how.
    [[nodiscard]] std::size_t read(std::span<char> room);

    [[nodiscard]] FileEnd end() const { return end_; }

    [[nodiscard]] bool compressed() const { return unpacker_ != nullptr; }

    /// Bytes of the file that were read.
    [[nodiscard]] std::uint64_t position() const { return position_; }

    [[nodiscard]] int descriptor() const { return file_; }

  private:
    [[nodiscard]] std::size_t read_file(std::span<char> room);
    [[nodiscard]] std::size_t read_packed(std::span<char> room);
    void look_at_begin();

    int file_;
    std::uint64_t position_ = 0;
    bool begun_ = false;
    FileEnd end_ = FileEnd::whole;
    std::unique_ptr<Unpacker> unpacker_; ///< null: it is not compressed
    std::vector<char> packed_;           ///< read, and not unpacked from `at_` on
    std::size_t at_ = 0;
};

} // namespace tw::sink
