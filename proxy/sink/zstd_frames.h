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

/// Unpacks compressed data piece by piece, frame behind frame.
class Unpacker {
  public:
    struct Step {
        std::size_t read = 0;      ///< bytes taken
        std::size_t written = 0;   ///< bytes given
        bool within_frame = false; ///< more belongs to the frame at hand
        bool damaged = false;      ///< what comes is no compressed data
        bool too_wide = false; ///< it needs more memory than kMaxWindowLog stands for; damaged, too
    };

    Unpacker() = default;
    virtual ~Unpacker() = default;
    Unpacker(const Unpacker&) = delete;
    Unpacker& operator=(const Unpacker&) = delete;
    Unpacker(Unpacker&&) = delete;
    Unpacker& operator=(Unpacker&&) = delete;

    [[nodiscard]] virtual Step unpack(std::span<const char> packed, std::span<char> room) = 0;
};

/// A file of zstd may ask for a window of this size to be unpacked, and no more memory: 128 MiB.
inline constexpr int kMaxWindowLog = 27;

/// Bytes at a file's begin that tell what it is.
inline constexpr std::size_t kSignatureSize = 4;

/// Whether a file that begins so may be a compressed one: there is less than a signature.
[[nodiscard]] bool may_be_packed(std::string_view begin);

/// Whether frames of zstd stand behind each other in a file that begins so.
[[nodiscard]] bool is_zstd(std::string_view begin);

/// What every frame begins with that is not skipped.
[[nodiscard]] std::string_view zstd_magic();

/// What unpacks a file that begins so, by zstd or gzip; null: it is not compressed.
///
/// Errors: throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<Unpacker> make_unpacker(std::string_view begin);

} // namespace tw::sink

struct ZSTD_CCtx_s;

namespace tw::sink {

/// Compresses text into frames of zstd, one behind the other. Each can be read alone, and any reader
/// of zstd reads them as one text.
class FrameWriter {
  public:
    FrameWriter();
    ~FrameWriter();
    FrameWriter(const FrameWriter&) = delete;
    FrameWriter& operator=(const FrameWriter&) = delete;
    FrameWriter(FrameWriter&&) = delete;
    FrameWriter& operator=(FrameWriter&&) = delete;

    /// Appends to `out` what is ready of the frame.
    void add(std::string_view text, std::string& out);
    /// Ends the frame; the next text begins another one.
    void end(std::string& out);
    /// A frame of its own, between two others. Of repetitive text it takes half the time of one that is added to: zstd
    /// looks for repetitions in the text itself and not in a copy of it, and finds them with less effort.
    void add_whole(std::string_view text, std::string& out);

    /// What was added to the frame at hand; 0: it was not begun.
    [[nodiscard]] std::uint64_t text_bytes() const { return text_bytes_; }

    /// The last frame took so little that most of a line stands in those just before it: it costs little to begin
    /// another one.
    [[nodiscard]] bool repetitive() const { return repetitive_; }

  private:
    void run(std::string_view text, int directive, std::string& out);

    std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> context_;
    std::vector<char> room_;
    std::unique_ptr<char[]>
        whole_room_; ///< for whole frames; of it only what they fill is in memory
    std::size_t whole_size_ = 0;
    std::uint64_t text_bytes_ = 0;
    std::uint64_t frame_bytes_ = 0; ///< what it takes, as far as it is ready
    bool repetitive_ = false;
};

/// A frame of this much text is ended at once. Compressed it is what is kept in memory while the disk is full, and
/// unpacked what a reader holds back until the frame's checksum agrees. A full server fills it within a second.
inline constexpr std::uint64_t kMaxFrameText = std::uint64_t{64} << 20U;

/// Repetitive text of this size makes a good frame of its own: lines of several ticks, as all players of a full server
/// saw them.
inline constexpr std::size_t kWholeFrameText = std::size_t{12} << 20U;

/// What a file of frames holds.
struct FrameScan {
    std::uint64_t whole = 0; ///< bytes of the whole frames at its beginning
    std::uint64_t size = 0;  ///< bytes in all
    /// Behind the whole ones stands no beginning of a frame: something else wrote there.
    bool foreign = false;
};

/// Reads the headers of all frames and blocks, not what is in them. Zeros up to the end are what a
/// machine leaves that lost its power, and count as unfinished. Nothing when it cannot be read.
[[nodiscard]] std::optional<FrameScan> scan_frames(int file);

/// Hands on what the whole blocks of a frame at `at` hold, which has no end, as long as `use` returns true. Returns
/// where the last one ends that held anything; `at`: none did. Nothing: it cannot be unpacked in memory of the usual size.
[[nodiscard]] std::optional<std::uint64_t>
read_unfinished_frame(int file, std::uint64_t at,
                      const std::function<bool(std::string_view text)>& use);

/// The most bytes that one skippable frame takes.
inline constexpr std::uint64_t kMaxSkippable = 0xFFFFFFFF;

/// What makes `size` bytes a frame that readers skip, when it is written over the first of them. RFC 8878, 3.1.2.
[[nodiscard]] std::string skippable_header(std::uint64_t size);

} // namespace tw::sink
