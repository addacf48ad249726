#pragma once

#include "proxy/base/descriptors.h"
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

/// Why a reader of a file returned no further data.
enum class ReadStopReason : std::uint8_t {
    file_end,         ///< all data of the file was read
    within_frame,     ///< the file ends within a compressed frame: it is truncated or still written
    damaged,          ///< the next bytes are not valid compressed data
    window_too_large, ///< the next compressed data needs a larger window than kMaxWindowLog
    read_error,       ///< the system reported a read error
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

    /// Reads up to `room.size()` bytes into `room`. Returns their number; 0 at the current end of
    /// the file. stop_reason() then tells why there is no further data.
    [[nodiscard]] std::size_t read(std::span<char> room);

    [[nodiscard]] ReadStopReason stop_reason() const { return stop_reason_; }

    /// Returns the number of bytes of the file that were skipped as damaged.
    [[nodiscard]] std::uint64_t skipped_bytes() const {
        return skipped_before_damage_ + (damage_start_ ? position_ - *damage_start_ : 0);
    }

    /// Returns whether read() has returned text of a frame that later turned out to be damaged.
    [[nodiscard]] bool has_returned_damaged_text() const { return has_returned_damaged_text_; }

    /// Returns the number of bytes of the file that were read.
    [[nodiscard]] std::uint64_t position() const { return position_; }

    [[nodiscard]] int descriptor() const { return file_.get(); }

  private:
    [[nodiscard]] std::size_t read_file(std::span<char> room);
    [[nodiscard]] std::size_t read_decompressed(std::span<char> room);
    void detect_format();

    [[nodiscard]] std::size_t read_undamaged_text(std::span<char> room);
    [[nodiscard]] bool decompress_text();
    [[nodiscard]] std::span<char> free_text_space();
    void set_stop_reason(ReadStopReason reason);
    [[nodiscard]] bool load_packed_bytes();
    void process_decompressed_text(const Decompressor::Result& result);
    [[nodiscard]] bool contains_another_frame() const;
    void end_frame();
    void skip_damaged_frame();
    [[nodiscard]] bool find_next_frame();

    base::UniqueFd file_;
    DamageHandling on_damage_;
    std::uint64_t position_ = 0;
    bool is_format_known_ = false;
    ReadStopReason stop_reason_ = ReadStopReason::file_end;
    std::unique_ptr<Decompressor> decompressor_; ///< null if the file is not compressed
    /// Bytes read from the file. The bytes from `packed_offset_` on are not decompressed yet.
    std::vector<char> packed_;
    std::size_t packed_offset_ = 0;

    // The following members are used only with DamageHandling::skip.
    std::vector<char> text_;         ///< text of the current frame
    std::size_t text_bytes_ = 0;     ///< number of bytes in `text_`
    std::size_t released_bytes_ = 0; ///< number of bytes of `text_` that may be returned
    std::size_t returned_bytes_ = 0; ///< number of bytes of `text_` that were returned
    std::uint64_t frame_offset_ = 0; ///< file offset of the current frame
    bool is_within_frame_ = false;   ///< true if a part of the current frame was decompressed
    /// True if the decompressor may have further text because `text_` was full.
    bool has_more_text_ = false;
    /// True if text of the current frame was returned before the frame's end.
    bool is_returned_early_ = false;
    bool is_searching_ = false; ///< true during the search for the next frame after a damaged frame
    /// True if data was skipped directly before the text that the next call of read() returns.
    bool has_gap_ = false;
    char last_char_ = '\n'; ///< the last character that read() returned
    /// The file offset of the first damaged frame since the latest complete frame; nullopt if no
    /// frame since then was damaged.
    std::optional<std::uint64_t> damage_start_;
    std::uint64_t skipped_before_damage_ = 0; ///< number of damaged bytes before `damage_start_`
    /// Number of bytes that were searched again after damaged frames.
    std::uint64_t searched_again_bytes_ = 0;
    /// True if the file's first frame needs a larger window than kMaxWindowLog, and no complete
    /// frame was found.
    bool needs_larger_window_ = false;
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
        return std::string_view{buffer_.data(), buffered_bytes_}.substr(line_start_);
    }

    [[nodiscard]] std::uint64_t num_lines() const { return num_lines_; }

    /// Returns the total size of the skipped lines in bytes. Lines longer than sink::kMaxLineBytes
    /// are skipped.
    [[nodiscard]] std::uint64_t skipped_bytes() const { return skipped_line_bytes_; }

    [[nodiscard]] const ByteSource& source() const { return source_; }

  private:
    [[nodiscard]] bool fill_buffer();

    ByteSource source_;
    std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 20U);
    std::size_t line_start_ = 0;     ///< offset in `buffer_` at which the next line begins
    std::size_t buffered_bytes_ = 0; ///< number of bytes in `buffer_`
    /// Offset in `buffer_`. There is no newline between `line_start_` and this offset.
    std::size_t searched_bytes_ = 0;
    bool is_skipping_line_ = false; ///< true within a line that is longer than sink::kMaxLineBytes
    std::uint64_t num_lines_ = 0;
    std::uint64_t skipped_line_bytes_ = 0;
};

/// Reads the first bytes of a file or pipe without consuming them: a later reader gets them, too.
/// Decompresses them if necessary. The path "-" stands for standard input.
class FileStartReader {
  public:
    /// Reads up to `size` bytes. If the file is a pipe, waits until it contains data. Reads nothing
    /// from a named pipe, or from a file that cannot be read; the later reader reports the error.
    FileStartReader(const std::string& path, std::size_t size);

    /// Returns the bytes that were read: fewer than requested if the file is short or a pipe is
    /// slow.
    [[nodiscard]] std::string_view bytes() const { return bytes_; }

  private:
    base::UniqueFd file_; ///< stays open, so that a pipe does not lose its reader
    std::string bytes_;
};

} // namespace tw::store
