#include "proxy/sink/unpacker.h"

#include <algorithm>
#include <limits>
#include <new>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

namespace tw::sink {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kZstd = "\x28\xB5\x2F\xFD"sv;
constexpr std::string_view kGzip = "\x1F\x8B\x08"sv;
/// zlib's number for: gzip, with the largest window.
constexpr int kGzipWindow = 16 + MAX_WBITS;

/// What a file of zstd may begin with, beside a frame: 0x184D2A50 to 0x184D2A5F.
bool is_skippable(std::string_view begin) {
    return begin.size() >= kSignatureSize && (begin[0] & '\xF0') == '\x50' &&
           begin.substr(1, 3) == "\x2A\x4D\x18"sv;
}

class ZstdUnpacker final : public Unpacker {
  public:
    ZstdUnpacker() : context_{ZSTD_createDCtx(), &ZSTD_freeDCtx} {
        if (context_ == nullptr) {
            throw std::bad_alloc{};
        }
        ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
    }

    [[nodiscard]] Step unpack(std::span<const char> packed, std::span<char> room) override {
        ZSTD_outBuffer out{.dst = room.data(), .size = room.size(), .pos = 0};
        ZSTD_inBuffer in{.src = packed.data(), .size = packed.size(), .pos = 0};
        const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &in);
        const bool damaged = ZSTD_isError(left) != 0;
        const bool too_wide = ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge;
        const bool stuck = in.pos == 0 && out.pos == 0;
        if (!stuck || !packed.empty()) {
            within_frame_ = left != 0;
        }
        return {.read = in.pos,
                .written = out.pos,
                .within_frame = within_frame_,
                .damaged = damaged,
                .too_wide = too_wide};
    }

  private:
    std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_;
    bool within_frame_ = false;
};

class GzipUnpacker final : public Unpacker {
  public:
    GzipUnpacker() {
        if (inflateInit2(&stream_, kGzipWindow) != Z_OK) {
            throw std::bad_alloc{};
        }
    }

    ~GzipUnpacker() override { inflateEnd(&stream_); }

    GzipUnpacker(const GzipUnpacker&) = delete;
    GzipUnpacker& operator=(const GzipUnpacker&) = delete;
    GzipUnpacker(GzipUnpacker&&) = delete;
    GzipUnpacker& operator=(GzipUnpacker&&) = delete;

    [[nodiscard]] Step unpack(std::span<const char> packed, std::span<char> room) override {
        constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
        packed = packed.first(std::min(packed.size(), kMost));
        room = room.first(std::min(room.size(), kMost));
        stream_.next_in = reinterpret_cast<const Bytef*>(packed.data());
        stream_.avail_in = static_cast<uInt>(packed.size());
        stream_.next_out = reinterpret_cast<Bytef*>(room.data());
        stream_.avail_out = static_cast<uInt>(room.size());
        const int result = inflate(&stream_, Z_NO_FLUSH);
        Step step{.read = packed.size() - stream_.avail_in,
                  .written = room.size() - stream_.avail_out,
                  .damaged = result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR};
        within_frame_ = result != Z_STREAM_END && (within_frame_ || step.read != 0);
        if (result == Z_STREAM_END) {
            inflateReset(&stream_); // another file may stand behind it
        }
        step.within_frame = within_frame_;
        return step;
    }

  private:
    z_stream stream_{};
    bool within_frame_ = false;
};

} // namespace

bool may_be_packed(std::string_view begin) {
    return begin.empty() || begin.front() == kZstd.front() || begin.front() == kGzip.front() ||
           (begin.front() & '\xF0') == '\x50';
}

bool is_zstd(std::string_view begin) {
    return begin.starts_with(kZstd) || is_skippable(begin);
}

std::string_view zstd_magic() {
    return kZstd;
}

std::unique_ptr<Unpacker> make_unpacker(std::string_view begin) {
    if (is_zstd(begin)) {
        return std::make_unique<ZstdUnpacker>();
    }
    if (begin.starts_with(kGzip)) {
        return std::make_unique<GzipUnpacker>();
    }
    return nullptr;
}

} // namespace tw::sink
