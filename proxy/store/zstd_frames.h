#pragma once

#include "proxy/record/interface.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tw::store {

/// Decompresses data piece by piece. The data may consist of several compressed frames.
class Decompressor : public record::InterfaceBase {
  public:
    /// The result of one call of decompress().
    struct Result {
        std::size_t read = 0;      ///< number of bytes read from `packed`
        std::size_t written = 0;   ///< number of bytes written to `room`
        bool within_frame = false; ///< true if the current frame has not ended
        bool damaged = false;      ///< true if the data is not valid compressed data
        /// True if the data needs a larger window than kMaxWindowLog. `damaged` is then true, too.
        bool window_too_large = false;
    };

    /// Reads a part of `packed` and writes the decompressed data to `room`.
    [[nodiscard]] virtual Result decompress(std::span<const char> packed, std::span<char> room) = 0;
};

/// The largest zstd window that is accepted, as log2 of its bytes: 128 MiB.
inline constexpr int kMaxWindowLog = 27;

/// The number of bytes at the start of a file that identify its format.
inline constexpr std::size_t kSignatureSize = 4;

/// Returns whether a file that starts with these bytes may be compressed. Examines only the first
/// byte. Returns true if there is no byte.
[[nodiscard]] bool may_be_compressed(std::string_view begin);

/// Returns whether a file that starts with these bytes consists of zstd frames.
[[nodiscard]] bool is_zstd(std::string_view begin);

/// Returns the bytes with which every zstd frame begins, except skippable frames.
[[nodiscard]] std::string_view zstd_magic();

/// Returns a decompressor for a file that starts with these bytes (zstd or gzip); null if the file
/// is not compressed. Errors: throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<Decompressor> make_decompressor(std::string_view begin);

/// Returns up to `size` bytes of the text of compressed data, which may be truncated or damaged.
[[nodiscard]] std::string decompress_start(std::string_view packed, std::size_t size);

} // namespace tw::store

struct ZSTD_CCtx_s;

namespace tw::store {

/// Compresses text into consecutive zstd frames. Each frame can be decompressed alone, and every
/// zstd reader reads consecutive frames as one text.
class ZstdFrameWriter {
  public:
    ZstdFrameWriter();

    /// Compresses the text into one frame, which is appended to `out`.
    void append_frame(std::string_view text, std::string& out);

  private:
    std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> context_;
    /// Contains a compressed frame. The unused part of this buffer takes no physical memory.
    std::unique_ptr<char[]> buffer_;
    std::size_t buffer_size_ = 0;
    /// True if the previous frame was very small, because most of its text repeated earlier text.
    bool was_repetitive_ = false;
};

/// A frame of a recording ends at this many bytes of text, which several ticks of a full server
/// fill. Larger frames would need more memory: writers store a frame while the disk is full, and
/// readers store a frame until they have verified its checksum.
inline constexpr std::size_t kFrameTextBytes = std::size_t{12} << 20U;

/// The result of scan_frames().
struct FrameScan {
    /// Total size of the complete frames at the start of the file, in bytes.
    std::uint64_t complete_bytes = 0;
    std::uint64_t size = 0; ///< size of the file in bytes
    /// True if the complete frames are followed by data that does not begin like a frame, because
    /// another program wrote that data.
    bool has_foreign_data = false;
};

/// Finds the complete frames of a file without decompressing them. Zeros up to the end of the file,
/// which a power failure may leave, count as an unfinished frame. Returns nullopt if the file
/// cannot be read. No other process may truncate the file during the call.
[[nodiscard]] std::optional<FrameScan> scan_frames(int file);

} // namespace tw::store
