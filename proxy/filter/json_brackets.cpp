#include "proxy/filter/json_brackets.h"

#include "proxy/filter/byte_masks.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace tw::filter {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Of a mask of quotes: from each one that begins a string to the one that ends it, which is left out.
std::uint64_t between(std::uint64_t quotes) {
    for (unsigned shift = 1; shift < kMaskBytes; shift *= 2) {
        quotes ^= quotes << shift;
    }
    return quotes;
}

} // namespace

bool JsonBrackets::open(std::size_t offset) {
    if (pairs_.size() == kMaxPairs) {
        return false;
    }
    const auto index = static_cast<std::uint32_t>(pairs_.size());
    pairs_.push_back({.open = static_cast<std::uint32_t>(offset), .next = inner_});
    inner_ = index;
    return true;
}

bool JsonBrackets::close(std::size_t offset) {
    Pair& pair = pairs_[inner_];
    inner_ = pair.next;
    pair.close = static_cast<std::uint32_t>(offset);
    pair.next = static_cast<std::uint32_t>(pairs_.size());
    return inner_ != kNone;
}

std::optional<std::string_view> JsonBrackets::read(std::string_view text) {
    text_ = text.substr(0, kNone);
    pairs_.clear();
    inner_ = kNone;
    bool in_string = false;
    bool escaped = false; ///< the byte that comes is behind a backslash in a string
    for (std::size_t at = 0; at < text_.size(); at += kMaskBytes) {
        const ByteMasks masks{text_.substr(at, kMaskBytes)};
        std::uint64_t quotes = masks.quotes();
        if (masks.backslashes() != 0 || escaped) {
            quotes = unescaped(masks, in_string, escaped);
        }
        const std::uint64_t strings = between(quotes) ^ (in_string ? ~std::uint64_t{0} : 0U);
        in_string = strings >> (kMaskBytes - 1) != 0;
        const std::uint64_t opening = masks.opening();
        for (std::uint64_t left = (opening | masks.closing()) & ~strings; left != 0;
             left &= left - 1) {
            const auto bit = static_cast<unsigned>(std::countr_zero(left));
            if ((opening >> bit & 1U) != 0) {
                if (!open(at + bit)) {
                    return std::nullopt;
                }
            } else if (pairs_.empty()) {
                return std::nullopt; // it begins with something else
            } else if (!close(at + bit)) {
                return text_.substr(0, at + bit + 1);
            }
        }
    }
    return std::nullopt;
}

} // namespace tw::filter
