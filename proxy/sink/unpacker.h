#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

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
