#pragma once

#include "proxy/sink/zstd_frames.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// What follows in a file after the data that could be read.
enum class FileEnd : std::uint8_t {
    whole,
    within_frame, ///< the file ends within a compressed frame: still being written, or truncated
    damaged,      ///< the next bytes are not valid compressed data
    too_wide,     ///< the next data needs a larger window than kMaxWindowLog
    unreadable,   ///< the system reported a read error
};

/// How a reader handles damaged compressed data.
enum class OnDamage : std::uint8_t {
    stop, ///< read nothing after the damage
    skip, ///< skip damaged zstd frames and read all others
};

/// Reads a file, and decompresses it if it starts as zstd or gzip data. The path "-" stands for standard
/// input. read() may be called again after the end was reached, because the file may have grown.
///
/// With OnDamage::skip, the text of a frame is returned only after its checksum was verified. There are
/// two exceptions: a frame without an end, and a frame with more than 8 MiB of text. If data is missing
/// within a line, the line ends with a control byte, which no record contains.
class ByteSource {
  public:
    /// Opens the file. Errors: throws std::system_error if the file cannot be opened.
    explicit ByteSource(const std::string& path, OnDamage on_damage = OnDamage::stop);
    ~ByteSource();
    ByteSource(const ByteSource&) = delete;
    ByteSource& operator=(const ByteSource&) = delete;

    /// Fills `room` with the data that is available. Returns 0 at the present end of the file; end()
    /// then says how the file ends.
    [[nodiscard]] std::size_t read(std::span<char> room);

    [[nodiscard]] FileEnd end() const { return end_; }

    [[nodiscard]] bool compressed() const { return unpacker_ != nullptr; }

    /// The number of bytes of the file that were skipped because they are damaged.
    [[nodiscard]] std::uint64_t left_out() const {
        return left_out_ + (damage_ ? position_ - *damage_ : 0);
    }

    /// True if some text was returned before its frame turned out to be damaged.
    [[nodiscard]] bool doubtful() const { return doubtful_; }

    /// The number of bytes of the file that were read.
    [[nodiscard]] std::uint64_t position() const { return position_; }

    [[nodiscard]] int descriptor() const { return file_; }

  private:
    [[nodiscard]] std::size_t read_file(std::span<char> room);
    [[nodiscard]] std::size_t read_packed(std::span<char> room);
    void look_at_begin();

    [[nodiscard]] std::size_t read_checked(std::span<char> room);
    [[nodiscard]] bool unpack_frame();
    [[nodiscard]] bool make_room();
    /// Returns the free part of `text_`. If the frame's text is returned at once, this is a piece small
    /// enough for the cache.
    [[nodiscard]] std::span<char> room_left();
    [[nodiscard]] bool load();
    void take(const Unpacker::Step& step);
    [[nodiscard]] bool contains_another_frame() const;
    void end_frame();
    void leave_out();
    [[nodiscard]] bool find_frame();

    int file_;
    OnDamage on_damage_;
    std::uint64_t position_ = 0;
    bool begun_ = false;
    FileEnd end_ = FileEnd::whole;
    std::unique_ptr<Unpacker> unpacker_; ///< null if the file is not compressed
    /// Bytes read from the file. Those from `at_` on are not decompressed yet.
    std::vector<char> packed_;
    std::size_t at_ = 0;

    // These members are used with OnDamage::skip only:
    std::vector<char> text_;    ///< text of the current frame
    std::size_t unpacked_ = 0;  ///< number of bytes in `text_`
    std::size_t released_ = 0;  ///< number of bytes of `text_` that may be returned
    std::size_t given_ = 0;     ///< number of bytes of `text_` that were returned
    std::uint64_t frame_ = 0;   ///< file offset of the current frame
    bool within_frame_ = false; ///< the current frame has begun
    bool full_ = false;         ///< the decompressor may have more text than there was room for
    bool shown_ = false;        ///< text of the current frame was returned before the frame's end
    bool searching_ = false;    ///< looking for the next frame after a damaged one
    bool torn_ = false; ///< data was skipped directly before the text that the next call returns
    char last_ = '\n';  ///< the last character returned
    /// File offset of the current damage; nullopt once a whole frame after it was found.
    std::optional<std::uint64_t> damage_;
    std::uint64_t left_out_ = 0; ///< number of bytes skipped before `damage_`
    /// The file starts with data that needs too large a window, and it has no other data so far.
    bool too_wide_ = false;
    bool doubtful_ = false;
};

/// Reads a recording, compressed or not, line by line in limited memory. Skips damaged frames.
class LineReader {
  public:
    /// The longest line that is accepted. It is hundreds of times as long as that of the largest snapshot.
    static constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20U;

    /// Opens the file; the path "-" stands for standard input.
    /// Errors: throws std::system_error if the file cannot be opened.
    explicit LineReader(const std::string& path) : source_{path, OnDamage::skip} {}

    /// Sets `line` to the next line without its newline, valid until the next call. Returns false at
    /// the present end of the file.
    [[nodiscard]] bool next(std::string_view& line);

    /// The text after the last newline, once next() has returned false.
    [[nodiscard]] std::string_view rest() const {
        return std::string_view{room_.data(), held_}.substr(at_);
    }

    [[nodiscard]] std::uint64_t lines() const { return lines_; }

    /// The number of bytes in lines that were skipped because they are too long.
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

    [[nodiscard]] const ByteSource& source() const { return source_; }

  private:
    [[nodiscard]] bool fill();

    ByteSource source_;
    std::vector<char> room_ = std::vector<char>(std::size_t{1} << 20U);
    std::size_t at_ = 0;     ///< offset in `room_` at which the next line begins
    std::size_t held_ = 0;   ///< number of bytes in `room_`
    std::size_t looked_ = 0; ///< there is no newline between `at_` and this offset
    bool skipping_ = false;  ///< inside a line that is too long
    std::uint64_t lines_ = 0;
    std::uint64_t skipped_ = 0;
};

/// The first bytes of a file, decompressed if the file is compressed. The path "-" stands for standard
/// input. The bytes are not consumed, even from a pipe, so the next reader gets all of them.
class FileBegin {
  public:
    /// Waits until a pipe has data. bytes() is empty for a named pipe, and for a file that cannot be
    /// read; the next reader reports that error.
    FileBegin(const std::string& path, std::size_t size);
    ~FileBegin();
    FileBegin(const FileBegin&) = delete;
    FileBegin& operator=(const FileBegin&) = delete;

    /// The first bytes: fewer than requested if the file is shorter or a pipe is filled slowly.
    [[nodiscard]] std::string_view bytes() const { return bytes_; }

  private:
    int file_; ///< kept open so that the writer of a pipe does not lose its reader
    std::string bytes_;
};

} // namespace tw::sink
