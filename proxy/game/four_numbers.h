#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Numbers of two lists, compared four at a time: bit i is of the i-th.
namespace tw::game {

inline constexpr std::size_t kFour = 4;
inline constexpr std::uint32_t kAllOfFour = 0xf;
inline constexpr std::uint32_t kAllOfSixteen = 0xffff;

#if defined(__SSE2__)

template <typename Number>
__m128i load_four(const Number* from) {
    static_assert(sizeof(Number) == sizeof(std::uint32_t));
    __m128i four;
    std::memcpy(&four, from, sizeof four);
    return four;
}

/// Which are the same.
template <typename Number>
std::uint32_t same_of_four(const Number* left, const Number* right) {
    const __m128i same = _mm_cmpeq_epi32(load_four(left), load_four(right));
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(same)));
}

/// The same of sixteen.
template <typename Number>
std::uint32_t same_of_sixteen(const Number* left, const Number* right) {
    const auto same = [&](std::size_t from) {
        return _mm_cmpeq_epi32(load_four(left + from), load_four(right + from));
    };
    const __m128i low = _mm_packs_epi32(same(0), same(kFour));
    const __m128i high = _mm_packs_epi32(same(2 * kFour), same(3 * kFour));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
}

/// Which are `distance` apart.
inline std::uint32_t apart_of_four(const std::uint32_t* left, const std::uint32_t* right,
                                   std::uint32_t distance) {
    const __m128i apart = _mm_sub_epi32(load_four(left), load_four(right));
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(distance));
    return static_cast<std::uint32_t>(
        _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(apart, wanted))));
}

#else

template <typename Number>
std::uint32_t same_of_four(const Number* left, const Number* right) {
    std::uint32_t same = 0;
    for (std::size_t i = 0; i < kFour; ++i) {
        same |= (left[i] == right[i] ? 1U : 0U) << i;
    }
    return same;
}

template <typename Number>
std::uint32_t same_of_sixteen(const Number* left, const Number* right) {
    std::uint32_t same = 0;
    for (std::size_t i = 0; i < 4 * kFour; i += kFour) {
        same |= same_of_four(left + i, right + i) << i;
    }
    return same;
}

inline std::uint32_t apart_of_four(const std::uint32_t* left, const std::uint32_t* right,
                                   std::uint32_t distance) {
    std::uint32_t apart = 0;
    for (std::size_t i = 0; i < kFour; ++i) {
        apart |= (left[i] - right[i] == distance ? 1U : 0U) << i;
    }
    return apart;
}

#endif

/// As many ints have a bit each.
inline constexpr std::size_t kMaskedInts = 32;

/// Bits of the first kMaskedInts ints that differ. Precondition: both have as many.
inline std::uint32_t differing_ints(std::span<const std::int32_t> left,
                                    std::span<const std::int32_t> right) {
    const std::size_t size = std::min(left.size(), kMaskedInts);
    std::uint32_t bits = 0;
    std::size_t at = 0;
    for (; at + kFour <= size; at += kFour) {
        bits |= (~same_of_four(&left[at], &right[at]) & kAllOfFour) << at;
    }
    for (; at < size; ++at) {
        bits |= (left[at] == right[at] ? 0U : 1U) << at;
    }
    return bits;
}

} // namespace tw::game
