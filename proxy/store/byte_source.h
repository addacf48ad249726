#pragma once

#include "proxy/sink/split_lines.h"
#include "proxy/store/zstd_frames.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::store {

/// How a file ends after the data that a reader returned.
enum class FileEnd : std::uint8_t {
    whole,
    within_frame,     ///< within a compressed frame: the file is still being written, or truncated
    damaged,          ///< the next bytes are not valid compressed data
    window_too_large, ///< the next compressed data needs a larger window than kMaxWindowLog
    unreadable,       ///< the system reported a read error
};

/// Whether a reader of compressed data stops at the first damage, or skips damaged zstd frames.
enum class DamageHandling : std::uint8_t { stop, skip };

/// Reads a file, and decompresses its data if the file starts as zstd or gzip data. The path "-"
/// stands for standard input. read() may be called again after the end was reached, because the
/// file may have grown.
///
/// With DamageHandling::skip, the text of a frame is returned only after its checksum was verified.
/// There are two exceptions: frames without an end, and frames with more than 8 MiB of text. If
/// data is skipped within a line, a control byte is returned in place of the gap. Records contain
/// no control bytes, so the line cannot pass as a record.
class ByteSource {
  public:
    /// Opens the file. Errors: throws std::system_error if the file cannot be opened.
    explicit ByteSource(const std::string& path, DamageHandling on_damage = DamageHandling::stop);
    ~ByteSource();
    ByteSource(const ByteSource&) = delete;
    ByteSource& operator=(const ByteSource&) = delete;

    /// Reads up to `room.size()` bytes into `room`. Returns their number; 0 at the current end of
    /// the file. file_end() then tells how the file ends.
    [[nodiscard]] std::size_t read(std::span<char> room);

    [[nodiscard]] FileEnd file_end() const { return end_; }

    /// Returns the number of bytes of the file that were skipped as damaged.
    [[nodiscard]] std::uint64_t skipped_bytes() const {
        return left_out_ + (damage_ ? position_ - *damage_ : 0);
    }

    /// Returns whether read() has returned text of a frame that later turned out to be damaged.
    [[nodiscard]] bool has_returned_damaged_text() const { return has_returned_damaged_text_; }

    /// Returns the number of bytes of the file that were read.
    [[nodiscard]] std::uint64_t position() const { return position_; }

    [[nodiscard]] int descriptor() const { return file_; }

  private:
    [[nodiscard]] std::size_t read_file(std::span<char> room);
    [[nodiscard]] std::size_t read_decompressed(std::span<char> room);
    void detect_format();

    [[nodiscard]] std::size_t read_undamaged_text(std::span<char> room);
    [[nodiscard]] bool unpack_frame();
    [[nodiscard]] bool make_text_room();
    [[nodiscard]] std::span<char> free_text_space();
    void set_end(FileEnd end);
    [[nodiscard]] bool load_packed_bytes();
    void process_result(const Decompressor::Result& result);
    [[nodiscard]] bool contains_another_frame() const;
    void end_frame();
    void skip_damaged_frame();
    [[nodiscard]] bool find_next_frame();

    int file_;
    DamageHandling on_damage_;
    std::uint64_t position_ = 0;
    bool has_begun_ = false;
    FileEnd end_ = FileEnd::whole;
    std::unique_ptr<Decompressor> unpacker_; ///< null if the file is not compressed
    /// Bytes read from the file. The bytes from `at_` on are not decompressed yet.
    std::vector<char> packed_;
    std::size_t at_ = 0;

    // The following members are used only with DamageHandling::skip.
    std::vector<char> text_;         ///< text of the current frame
    std::size_t text_bytes_ = 0;     ///< number of bytes in `text_`
    std::size_t released_bytes_ = 0; ///< number of bytes of `text_` that may be returned
    std::size_t returned_bytes_ = 0; ///< number of bytes of `text_` that were returned
    std::uint64_t frame_ = 0;        ///< file offset of the current frame
    bool within_frame_ = false;      ///< true if a part of the current frame was decompressed
    /// True if the decompressor may have further text that did not fit into `text_`.
    bool has_more_text_ = false;
    /// True if text of the current frame was returned before the frame's end.
    bool is_returned_early_ = false;
    bool is_searching_ = false; ///< true during the search for the next frame after a damaged frame
    /// True if data was skipped directly before the text that the next call of read() returns.
    bool has_gap_ = false;
    char last_char_ = '\n'; ///< the last character that read() returned
    /// The file offset at which the current damage begins; nullopt if no damage was found since the
    /// latest complete frame.
    std::optional<std::uint64_t> damage_;
    std::uint64_t left_out_ = 0; ///< number of bytes that were skipped before `damage_`
    /// True if the file starts with data that needs too large a window, and no other data was
    /// found.
    bool too_wide_ = false;
    bool has_returned_damaged_text_ = false;
};

/// Reads a recording, compressed or not, line by line in limited memory. Skips damaged frames.
class LineReader {
  public:
    /// Opens the file; the path "-" stands for standard input.
    /// Errors: throws std::system_error if the file cannot be opened.
    explicit LineReader(const std::string& path) : source_{path, DamageHandling::skip} {}

    /// Sets `line` to the next line, without its newline. The view is valid until the next call of
    /// next_line(). Returns false at the current end of the file.
    [[nodiscard]] bool next_line(std::string_view& line);

    /// Returns the text after the last newline. Precondition: next_line() has returned false.
    [[nodiscard]] std::string_view unfinished_line() const {
        return std::string_view{room_.data(), held_}.substr(at_);
    }

    [[nodiscard]] std::uint64_t num_lines() const { return lines_; }

    /// Returns the number of bytes in lines that were skipped because they are longer than
    /// sink::kMaxLineBytes.
    [[nodiscard]] std::uint64_t skipped_bytes() const { return skipped_; }

    [[nodiscard]] const ByteSource& source() const { return source_; }

  private:
    [[nodiscard]] bool fill_buffer();

    ByteSource source_;
    std::vector<char> room_ = std::vector<char>(std::size_t{1} << 20U);
    std::size_t at_ = 0;     ///< offset in `room_` at which the next line begins
    std::size_t held_ = 0;   ///< number of bytes in `room_`
    std::size_t looked_ = 0; ///< offset in `room_` up to which no newline was found after `at_`
    bool is_skipping_line_ = false; ///< true within a line that is longer than sink::kMaxLineBytes
    std::uint64_t lines_ = 0;
    std::uint64_t skipped_ = 0;
};

/// Gets the first bytes of a file without consuming them, even from a pipe, so that a later reader
/// gets them, too. Decompresses them if necessary. The path "-" stands for standard input.
class FileStartReader {
  public:
    /// Reads up to `size` bytes. If the file is a pipe, waits until it contains data. Reads nothing
    /// from a named pipe, or from a file that cannot be read; the later reader reports the error.
    FileStartReader(const std::string& path, std::size_t size);
    ~FileStartReader();
    FileStartReader(const FileStartReader&) = delete;
    FileStartReader& operator=(const FileStartReader&) = delete;

    /// Returns the bytes that were read: fewer than requested if the file is short or a pipe is
    /// slow.
    [[nodiscard]] std::string_view bytes() const { return bytes_; }

  private:
    int file_; ///< stays open, so that a pipe does not lose its reader
    std::string bytes_;
};

} // namespace tw::store
