#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Which of 64 bytes are those that JSON is made of, a bit for each. For json_brackets.cpp and its test.
namespace tw::filter {

inline constexpr std::size_t kMaskBytes = 64;

class ByteMasks {
  public:
    /// At most kMaskBytes; what is missing is none of them.
    explicit ByteMasks(std::string_view bytes) {
        if (bytes.size() >= kMaskBytes) {
            look(bytes.data());
            return;
        }
        std::array<char, kMaskBytes> room{};
        std::copy(bytes.begin(), bytes.end(), room.begin());
        look(room.data());
    }

    [[nodiscard]] std::uint64_t quotes() const { return quotes_; }

    [[nodiscard]] std::uint64_t backslashes() const { return backslashes_; }

    /// { and [
    [[nodiscard]] std::uint64_t opening() const { return opening_; }

    /// } and ]
    [[nodiscard]] std::uint64_t closing() const { return closing_; }

  private:
    /// Two kinds of brackets differ in this bit.
    static constexpr char kCurly = 0x20;

#if defined(__SSE2__)
    void look(const char* bytes) {
        constexpr std::size_t kPiece = 16;
        const auto mask = [](__m128i piece, char wanted) {
            return static_cast<std::uint64_t>(static_cast<unsigned>(
                _mm_movemask_epi8(_mm_cmpeq_epi8(piece, _mm_set1_epi8(wanted)))));
        };
        for (std::size_t at = 0; at < kMaskBytes; at += kPiece) {
            __m128i piece;
            std::memcpy(&piece, bytes + at, kPiece);
            const __m128i curly = _mm_or_si128(piece, _mm_set1_epi8(kCurly));
            quotes_ |= mask(piece, '"') << at;
            backslashes_ |= mask(piece, '\\') << at;
            opening_ |= mask(curly, '{') << at;
            closing_ |= mask(curly, '}') << at;
        }
    }
#else
    void look(const char* bytes) {
        for (std::size_t at = 0; at < kMaskBytes; ++at) {
            const auto bit = [at](bool is) { return std::uint64_t{is ? 1U : 0U} << at; };
            const auto curly = static_cast<char>(bytes[at] | kCurly);
            quotes_ |= bit(bytes[at] == '"');
            backslashes_ |= bit(bytes[at] == '\\');
            opening_ |= bit(curly == '{');
            closing_ |= bit(curly == '}');
        }
    }
#endif

    std::uint64_t quotes_ = 0;
    std::uint64_t backslashes_ = 0;
    std::uint64_t opening_ = 0;
    std::uint64_t closing_ = 0;
};

/// Quotes that begin or end a string: a backslash counts only in one, where it takes what is behind it with it.
/// `escaped`: the first byte is behind one; becomes whether the next 64 begin so.
[[nodiscard]] inline std::uint64_t unescaped(const ByteMasks& masks, bool in_string,
                                             bool& escaped) {
    std::uint64_t quotes = 0;
    std::uint64_t left = masks.quotes() | masks.backslashes();
    std::uint64_t skipped = escaped ? 1U : 0U; ///< what is behind a backslash
    escaped = false;
    for (; left != 0; left &= left - 1) {
        const std::uint64_t bit = left & (~left + 1);
        if ((bit & skipped) != 0) {
            continue;
        }
        if ((bit & masks.quotes()) != 0) {
            quotes |= bit;
            in_string = !in_string;
        } else if (in_string) {
            skipped |= bit << 1U;
            escaped = bit >> (kMaskBytes - 1) != 0;
        }
    }
    return quotes;
}

} // namespace tw::filter
