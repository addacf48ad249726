#include "proxy/store/zstd_frames.h"

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

namespace tw::store {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kZstdMagic = "\x28\xB5\x2F\xFD"sv;
constexpr std::string_view kGzipMagic = "\x1F\x8B\x08"sv;
/// Zlib's windowBits for gzip with the largest window.
constexpr int kGzipWindowBits = 16 + MAX_WBITS;

/// Returns whether the bytes start with the magic number of a skippable zstd frame, which is a
/// number from 0x184D2A50 to 0x184D2A5F.
bool is_skippable_frame(std::string_view begin) {
    return begin.size() >= kSignatureSize && (begin[0] & '\xF0') == '\x50' &&
           begin.substr(1, 3) == "\x2A\x4D\x18"sv;
}

class ZstdDecompressor final : public Decompressor {
  public:
    ZstdDecompressor() : context_{ZSTD_createDCtx(), &ZSTD_freeDCtx} {
        if (context_ == nullptr) {
            throw std::bad_alloc{};
        }
        ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
    }

    [[nodiscard]] Result decompress(std::span<const char> packed, std::span<char> room) override {
        ZSTD_outBuffer out{.dst = room.data(), .size = room.size(), .pos = 0};
        ZSTD_inBuffer in{.src = packed.data(), .size = packed.size(), .pos = 0};
        const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &in);
        const bool damaged = ZSTD_isError(left) != 0;
        const bool window_too_large =
            ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge;
        const bool stuck = in.pos == 0 && out.pos == 0;
        if (!stuck || !packed.empty()) {
            is_within_frame_ = left != 0;
        }
        return {.read = in.pos,
                .written = out.pos,
                .within_frame = is_within_frame_,
                .damaged = damaged,
                .window_too_large = window_too_large};
    }

  private:
    std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_;
    bool is_within_frame_ = false;
};

class GzipDecompressor final : public Decompressor {
  public:
    GzipDecompressor() {
        if (inflateInit2(&stream_, kGzipWindowBits) != Z_OK) {
            throw std::bad_alloc{};
        }
    }

    ~GzipDecompressor() override { inflateEnd(&stream_); }

    GzipDecompressor(const GzipDecompressor&) = delete;
    GzipDecompressor& operator=(const GzipDecompressor&) = delete;

    [[nodiscard]] Result decompress(std::span<const char> packed, std::span<char> room) override {
        constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
        packed = packed.first(std::min(packed.size(), kMost));
        room = room.first(std::min(room.size(), kMost));
        stream_.next_in = reinterpret_cast<const Bytef*>(packed.data());
        stream_.avail_in = static_cast<uInt>(packed.size());
        stream_.next_out = reinterpret_cast<Bytef*>(room.data());
        stream_.avail_out = static_cast<uInt>(room.size());
        const int result = inflate(&stream_, Z_NO_FLUSH);
        Result step{.read = packed.size() - stream_.avail_in,
                    .written = room.size() - stream_.avail_out,
                    .damaged = result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR};
        is_within_frame_ = result != Z_STREAM_END && (is_within_frame_ || step.read != 0);
        if (result == Z_STREAM_END) {
            inflateReset(&stream_); // another gzip stream may follow
        }
        step.within_frame = is_within_frame_;
        return step;
    }

  private:
    z_stream stream_{};
    bool is_within_frame_ = false;
};

} // namespace

bool may_be_compressed(std::string_view begin) {
    return begin.empty() || begin.front() == kZstdMagic.front() ||
           begin.front() == kGzipMagic.front() || (begin.front() & '\xF0') == '\x50';
}

bool is_zstd(std::string_view begin) {
    return begin.starts_with(kZstdMagic) || is_skippable_frame(begin);
}

std::string_view zstd_magic() {
    return kZstdMagic;
}

std::unique_ptr<Decompressor> make_decompressor(std::string_view begin) {
    if (is_zstd(begin)) {
        return std::make_unique<ZstdDecompressor>();
    }
    if (begin.starts_with(kGzipMagic)) {
        return std::make_unique<GzipDecompressor>();
    }
    return nullptr;
}

std::string decompress_start(std::string_view packed, std::size_t size) {
    std::string text;
    std::vector<char> room(std::size_t{64} << 10U);
    const auto decompressor = make_decompressor(packed);
    while (decompressor && text.size() < size) {
        const auto step = decompressor->decompress(packed, room);
        text.append(room.data(), step.written);
        packed.remove_prefix(step.read);
        if (step.damaged || (step.read == 0 && step.written == 0)) {
            break;
        }
    }
    text.resize(std::min(text.size(), size));
    return text;
}

namespace {

/// The compression level of most frames. At this level, compressing is faster than writing to disk.
constexpr int kCompressionLevel = 3;

/// The compression level for very repetitive text, for which a higher level saves little.
constexpr int kFastCompressionLevel = 1;

/// The size of the zstd window, as log2 of its bytes: 16 MiB. The window of a full server's
/// recording then contains the lines of the previous tick, which repeat in the next tick. Readers
/// of zstd accept up to 128 MiB by default.
constexpr int kWindowLog = 24;

/// Text counts as repetitive if it is at least this many times as long as its compressed frame.
constexpr std::uint64_t kRepetitiveRatio = 48;

} // namespace

ZstdFrameWriter::ZstdFrameWriter() : context_{ZSTD_createCCtx(), &ZSTD_freeCCtx} {
    if (context_ == nullptr) {
        throw std::bad_alloc{};
    }
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_windowLog, kWindowLog);
}

void ZstdFrameWriter::append_frame(std::string_view text, std::string& out) {
    if (const std::size_t most = ZSTD_compressBound(text.size()); buffer_size_ < most) {
        buffer_ = std::make_unique_for_overwrite<char[]>(most);
        buffer_size_ = most;
    }
    const bool is_fast = was_repetitive_ && text.size() >= kFrameTextBytes / 2;
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel,
                           is_fast ? kFastCompressionLevel : kCompressionLevel);
    const std::size_t size =
        ZSTD_compress2(context_.get(), buffer_.get(), buffer_size_, text.data(), text.size());
    if (ZSTD_isError(size) != 0) {
        throw std::bad_alloc{}; // no other error is possible when compressing in memory
    }
    out.append(buffer_.get(), size);
    was_repetitive_ = text.size() / size >= kRepetitiveRatio;
}

std::optional<FrameScan> scan_frames(int file) {
    struct stat found {};

    if (::fstat(file, &found) != 0) {
        return std::nullopt;
    }
    FrameScan scan{.size = static_cast<std::uint64_t>(found.st_size)};
    if (scan.size == 0) {
        return scan;
    }
    void* const memory = ::mmap(nullptr, scan.size, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) {
        return std::nullopt;
    }
    const std::string_view bytes{static_cast<const char*>(memory), scan.size};
    while (scan.complete_bytes < scan.size) {
        const std::string_view rest = bytes.substr(scan.complete_bytes);
        const std::size_t size = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
        if (ZSTD_isError(size) != 0) {
            scan.has_foreign_data = ZSTD_getErrorCode(size) != ZSTD_error_srcSize_wrong &&
                                    rest.find_first_not_of('\0') != std::string_view::npos;
            break;
        }
        scan.complete_bytes += size;
    }
    ::munmap(memory, scan.size);
    return scan;
}

} // namespace tw::store
