#pragma once

#include "proxy/record/interface.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// Decompresses data piece by piece. The data may consist of several frames.
class Unpacker : public record::Interface {
  public:
    struct Step {
        std::size_t read = 0;      ///< number of bytes read from `packed`
        std::size_t written = 0;   ///< number of bytes written to `room`
        bool within_frame = false; ///< the current frame has not ended
        bool damaged = false;      ///< the data is not valid compressed data
        /// The data needs a larger window than kMaxWindowLog. `damaged` is set, too.
        bool too_wide = false;
    };

    [[nodiscard]] virtual Step unpack(std::span<const char> packed, std::span<char> room) = 0;
};

/// The largest zstd window that is accepted, as log2 of its bytes: 128 MiB.
inline constexpr int kMaxWindowLog = 27;

/// The number of bytes at the start of a file that identify its format.
inline constexpr std::size_t kSignatureSize = 4;

/// True if a file that starts with these bytes, which may be fewer than a signature, may be compressed.
[[nodiscard]] bool may_be_packed(std::string_view begin);

/// True if a file that starts with these bytes consists of zstd frames.
[[nodiscard]] bool is_zstd(std::string_view begin);

/// Returns the first bytes of every zstd frame that is not skippable.
[[nodiscard]] std::string_view zstd_magic();

/// Returns a decompressor for a file that starts with these bytes (zstd or gzip); null if the file is not
/// compressed.
/// Errors: throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<Unpacker> make_unpacker(std::string_view begin);

} // namespace tw::sink

struct ZSTD_CCtx_s;

namespace tw::sink {

/// Compresses text into consecutive zstd frames. Each frame can be decompressed on its own, and every zstd
/// reader reads all of them as one text.
class FrameWriter {
  public:
    FrameWriter();
    ~FrameWriter();
    FrameWriter(const FrameWriter&) = delete;
    FrameWriter& operator=(const FrameWriter&) = delete;

    /// Adds text to the current frame. Appends the compressed data that is ready to `out`.
    void add(std::string_view text, std::string& out);
    /// Ends the frame; the next text starts another one.
    void end(std::string& out);
    /// Writes a complete frame. Precondition: no frame is open. For repetitive text, this takes half the
    /// time of add(), because zstd searches the text itself instead of a copy, and with less effort.
    void add_whole(std::string_view text, std::string& out);

    /// The number of text bytes in the current frame; 0 if no frame is open.
    [[nodiscard]] std::uint64_t text_bytes() const { return text_bytes_; }

    /// True if the last frame compressed so well that most of each line must be a repetition of the lines
    /// before it. Another frame then costs little.
    [[nodiscard]] bool repetitive() const { return repetitive_; }

  private:
    void run(std::string_view text, int directive, std::string& out);

    std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> context_;
    std::vector<char> room_;
    /// Output buffer of add_whole(). It takes physical memory only where it was used.
    std::unique_ptr<char[]> whole_room_;
    std::size_t whole_size_ = 0;
    std::uint64_t text_bytes_ = 0;
    std::uint64_t frame_bytes_ = 0; ///< number of compressed bytes in the current frame
    bool repetitive_ = false;
};

/// A frame is ended at this size of text. Its compressed data stays in memory while the disk is full, and
/// a reader holds back its text until the checksum was verified. A full server fills a frame within a
/// second.
inline constexpr std::uint64_t kMaxFrameText = std::uint64_t{64} << 20U;

/// At this size, repetitive text is written as a separate frame. It is the text of several ticks of a full
/// server, for all its players.
inline constexpr std::size_t kWholeFrameText = std::size_t{12} << 20U;

/// The structure of a file of zstd frames.
struct FrameScan {
    std::uint64_t whole = 0; ///< size of the whole frames at the start, in bytes
    std::uint64_t size = 0;  ///< size of the file in bytes
    /// True if the data after the whole frames does not begin like a frame: another program wrote it.
    bool foreign = false;
};

/// Reads the headers of all frames and blocks, but not their contents. Zeros up to the end, which a power
/// failure may leave, count as an unfinished frame. Returns nullopt if the file cannot be read.
[[nodiscard]] std::optional<FrameScan> scan_frames(int file);

} // namespace tw::sink
