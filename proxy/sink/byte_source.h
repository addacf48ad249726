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

/// How a file that was read to its end ends.
enum class FileEnd : std::uint8_t {
    whole,
    within_frame, ///< in the middle of compressed data: it is being written, or was cut
    damaged,      ///< what comes is no compressed data
    too_wide,     ///< what comes can only be unpacked in more memory than kMaxWindowLog stands for
    unreadable,   ///< the system cannot read it any further
};

/// What becomes of compressed data that is damaged.
enum class OnDamage : std::uint8_t {
    stop, ///< nothing behind it is read
    skip, ///< frames of zstd are left out that are damaged; all others are read
};

/// What a file holds, unpacked where it begins as zstd or gzip does; "-": standard input. At its end it can be
/// asked again, when the file may have grown.
///
/// Where damaged frames are left out, nothing of a frame is handed out before its checksum agreed, but for one that
/// has no end yet and for one of more than 8 MiB of text. Where something is missing in the middle of a
/// line, the line ends with a control byte, which no record has.
class ByteSource {
  public:
    /// Errors: throws std::system_error when it cannot be opened.
    explicit ByteSource(const std::string& path, OnDamage on_damage = OnDamage::stop);
    ~ByteSource();
    ByteSource(const ByteSource&) = delete;
    ByteSource& operator=(const ByteSource&) = delete;
    ByteSource(ByteSource&&) = delete;
    ByteSource& operator=(ByteSource&&) = delete;

    /// Fills `room`, or as much of it as there is. 0: the end, for now; end() says how.
    [[nodiscard]] std::size_t read(std::span<char> room);

    [[nodiscard]] FileEnd end() const { return end_; }

    [[nodiscard]] bool compressed() const { return unpacker_ != nullptr; }

    /// Bytes of the file that were left out because they are damaged.
    [[nodiscard]] std::uint64_t left_out() const {
        return left_out_ + (damage_ ? position_ - *damage_ : 0);
    }

    /// Something was handed out before it turned out to be a part of what is damaged.
    [[nodiscard]] bool doubtful() const { return doubtful_; }

    /// Bytes of the file that were read.
    [[nodiscard]] std::uint64_t position() const { return position_; }

    [[nodiscard]] int descriptor() const { return file_; }

  private:
    [[nodiscard]] std::size_t read_file(std::span<char> room);
    [[nodiscard]] std::size_t read_packed(std::span<char> room);
    void look_at_begin();

    [[nodiscard]] std::size_t read_checked(std::span<char> room);
    [[nodiscard]] bool unpack_frame();
    [[nodiscard]] bool make_room();
    /// In `text_`: of a frame that is not held back, a piece that stays in the cache.
    [[nodiscard]] std::span<char> room_left();
    [[nodiscard]] bool load();
    void take(const Unpacker::Step& step);
    [[nodiscard]] bool took_another() const;
    void end_frame();
    void leave_out();
    [[nodiscard]] bool find_frame();

    int file_;
    OnDamage on_damage_;
    std::uint64_t position_ = 0;
    bool begun_ = false;
    FileEnd end_ = FileEnd::whole;
    std::unique_ptr<Unpacker> unpacker_; ///< null: it is not compressed
    std::vector<char> packed_;           ///< read, and not unpacked from `at_` on
    std::size_t at_ = 0;

    // Where damaged frames are left out:
    std::vector<char> text_;    ///< of the frame at hand
    std::size_t unpacked_ = 0;  ///< bytes of it
    std::size_t released_ = 0;  ///< of these may be handed out
    std::size_t given_ = 0;     ///< of these were
    std::uint64_t frame_ = 0;   ///< where in the file it begins
    bool within_frame_ = false; ///< it has begun
    bool full_ = false;         ///< more of it may be unpacked than there was room for
    bool shown_ = false;        ///< some of it was handed out before its end
    bool searching_ = false;    ///< for the next frame, behind one that is damaged
    bool torn_ = false;         ///< something was left out in front of what is handed out next
    char last_ = '\n';          ///< that was handed out
    std::optional<std::uint64_t>
        damage_; ///< where what is left out begins, while nothing behind it is known to be whole
    std::uint64_t left_out_ = 0; ///< in front of that
    bool too_wide_ =
        false; ///< the file begins with what needs too much memory, and nothing else was found
    bool doubtful_ = false;
};

/// Reads a recording line by line, compressed or not, in memory of limited size. Frames that are damaged are left out.
class LineReader {
  public:
    /// The longest line: hundreds of times what the largest snapshot takes.
    static constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20U;

    /// "-": standard input. Errors: throws std::system_error when it cannot be opened.
    explicit LineReader(const std::string& path) : source_{path, OnDamage::skip} {}

    /// The next line, without its end; it lives until the next call. False: there is no more, for now.
    [[nodiscard]] bool next(std::string_view& line);

    /// At the end: what stands behind the last line's end.
    [[nodiscard]] std::string_view rest() const {
        return std::string_view{room_.data(), held_}.substr(at_);
    }

    /// How many next() gave.
    [[nodiscard]] std::uint64_t lines() const { return lines_; }

    /// Bytes of lines that were too long, and left out.
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

    [[nodiscard]] const ByteSource& source() const { return source_; }

  private:
    [[nodiscard]] bool fill();

    ByteSource source_;
    std::vector<char> room_ = std::vector<char>(std::size_t{1} << 20U);
    std::size_t at_ = 0;     ///< where the next line begins
    std::size_t held_ = 0;   ///< bytes in `room_`
    std::size_t looked_ = 0; ///< up to here there is no line's end behind `at_`
    bool skipping_ = false;  ///< within a line that is too long
    std::uint64_t lines_ = 0;
    std::uint64_t skipped_ = 0;
};

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
