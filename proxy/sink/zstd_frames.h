#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// Decompresses data piece by piece, frame after frame.
class Unpacker {
  public:
    struct Step {
        std::size_t read = 0;      ///< bytes read from `packed`
        std::size_t written = 0;   ///< bytes written to `room`
        bool within_frame = false; ///< the current frame has not ended
        bool damaged = false;      ///< the data is not valid compressed data
        /// The data needs a larger window than kMaxWindowLog; damaged is set, too.
        bool too_wide = false;
    };

    Unpacker() = default;
    virtual ~Unpacker() = default;
    Unpacker(const Unpacker&) = delete;
    Unpacker& operator=(const Unpacker&) = delete;
    Unpacker(Unpacker&&) = delete;
    Unpacker& operator=(Unpacker&&) = delete;

    [[nodiscard]] virtual Step unpack(std::span<const char> packed, std::span<char> room) = 0;
};

/// Largest zstd window that is accepted (log2 of bytes): 128 MiB.
inline constexpr int kMaxWindowLog = 27;

/// Bytes at a file's start that identify its format.
inline constexpr std::size_t kSignatureSize = 4;

/// True if a file that starts with these bytes, fewer than a signature, may be compressed.
[[nodiscard]] bool may_be_packed(std::string_view begin);

/// True if a file that starts with these bytes consists of zstd frames.
[[nodiscard]] bool is_zstd(std::string_view begin);

/// The first bytes of every zstd frame that is not skippable.
[[nodiscard]] std::string_view zstd_magic();

/// Returns a decompressor for a file that starts with these bytes (zstd or gzip); null if it is not
/// compressed.
/// Errors: throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<Unpacker> make_unpacker(std::string_view begin);

} // namespace tw::sink

struct ZSTD_CCtx_s;

namespace tw::sink {

/// Compresses text into consecutive zstd frames. Each frame can be read alone, and any zstd reader
/// reads them all as one text.
class FrameWriter {
  public:
    FrameWriter();
    ~FrameWriter();
    FrameWriter(const FrameWriter&) = delete;
    FrameWriter& operator=(const FrameWriter&) = delete;
    FrameWriter(FrameWriter&&) = delete;
    FrameWriter& operator=(FrameWriter&&) = delete;

    /// Adds text to the current frame and appends finished output to `out`.
    void add(std::string_view text, std::string& out);
    /// Ends the frame; the next text starts another one.
    void end(std::string& out);
    /// Writes a complete frame; no frame may be open. For repetitive text it takes half the time of
    /// add(): zstd searches the text itself instead of a copy, with less effort.
    void add_whole(std::string_view text, std::string& out);

    /// Text bytes added to the current frame; 0 if no frame is open.
    [[nodiscard]] std::uint64_t text_bytes() const { return text_bytes_; }

    /// True if the last frame compressed so well that most of each line must repeat the lines just
    /// before it. Starting another frame then costs little.
    [[nodiscard]] bool repetitive() const { return repetitive_; }

  private:
    void run(std::string_view text, int directive, std::string& out);

    std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> context_;
    std::vector<char> room_;
    std::unique_ptr<char[]>
        /// Output buffer of add_whole(); takes physical memory only as far as it was used.
        whole_room_;
    std::size_t whole_size_ = 0;
    std::uint64_t text_bytes_ = 0;
    std::uint64_t frame_bytes_ = 0; ///< compressed bytes of the frame so far
    bool repetitive_ = false;
};

/// A frame is ended at this size of text. Its compressed data stays in memory while the disk is
/// full, and a reader holds back its text until the checksum was verified. A full server fills it
/// within a second.
inline constexpr std::uint64_t kMaxFrameText = std::uint64_t{64} << 20U;

/// Text size at which repetitive text is written as a frame of its own: several ticks of a full
/// server as all its players saw them.
inline constexpr std::size_t kWholeFrameText = std::size_t{12} << 20U;

/// The structure of a file of zstd frames.
struct FrameScan {
    std::uint64_t whole = 0; ///< bytes of the whole frames at the start
    std::uint64_t size = 0;  ///< bytes of the file
    /// True if the data after the whole frames is no start of a frame: another program wrote it.
    bool foreign = false;
};

/// Reads the headers of all frames and blocks, but not their content. Zeros up to the end, which a
/// machine leaves after a power failure, count as unfinished. Returns nullopt if the file cannot be
/// read.
[[nodiscard]] std::optional<FrameScan> scan_frames(int file);

/// Passes the text of the whole blocks of an unfinished frame at offset `at` to `use`, until `use`
/// returns false. Returns the file offset after the last block that had text, or `at` if none had.
/// Returns nullopt if the data needs too large a window.
[[nodiscard]] std::optional<std::uint64_t>
read_unfinished_frame(int file, std::uint64_t at,
                      const std::function<bool(std::string_view text)>& use);

/// The most bytes of a skippable frame.
inline constexpr std::uint64_t kMaxSkippable = 0xFFFFFFFF;

/// Returns a header that turns `size` bytes into a skippable frame when written over the first of
/// them.
/// Source: RFC 8878, 3.1.2.
[[nodiscard]] std::string skippable_header(std::uint64_t size);

} // namespace tw::sink
