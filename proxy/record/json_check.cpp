#include "proxy/record/json_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tw::record {

namespace {

/// The kind of token that begins with a byte.
enum class TokenKind : std::uint8_t { other, quote, object, list, number, word };

constexpr std::array<TokenKind, 256> kKinds = [] {
    std::array<TokenKind, 256> kinds{};
    const auto set = [&kinds](std::string_view characters, TokenKind kind) {
        for (const char character : characters) {
            kinds[static_cast<unsigned char>(character)] = kind;
        }
    };
    set("\"", TokenKind::quote);
    set("{", TokenKind::object);
    set("[", TokenKind::list);
    set("-0123456789", TokenKind::number);
    set("tfn", TokenKind::word);
    return kinds;
}();

constexpr bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

constexpr bool is_hex(char character) {
    const auto lower = static_cast<char>(character | 0x20);
    return is_digit(character) || (lower >= 'a' && lower <= 'f');
}

/// Reads a text once, without recursion. The text must end with a closing bracket. All reading loops
/// stop there, so only the code for brackets checks for the end.
class JsonChecker {
  public:
    explicit JsonChecker(std::string_view text)
        : at_{text.data()}, end_{text.data() + text.size()} {}

    [[nodiscard]] bool is_object() {
        while (value()) {
            const Next next = end_of_value();
            if (next != Next::value) {
                return next == Next::nothing && at_ == end_;
            }
        }
        return false;
    }

  private:
    static constexpr std::ptrdiff_t kPiece = 16;

    enum class Next : std::uint8_t { value, nothing, wrong };

    bool take(char wanted) {
        const bool there = *at_ == wanted;
        at_ += there ? 1 : 0;
        return there;
    }

    void skip_space() {
        while (*at_ == ' ') {
            ++at_;
        }
    }

    /// Reads a value. Of a list or object, reads only the beginning up to the first simple value.
    bool value() {
        while (true) {
            switch (kKinds[static_cast<unsigned char>(*at_)]) {
            case TokenKind::quote:
                return string();
            case TokenKind::number:
                return number();
            case TokenKind::word:
                return take_word("true") || take_word("false") || take_word("null");
            case TokenKind::object:
                if (!open(true)) {
                    return false;
                }
                if (*at_ == '}') {
                    return true;
                }
                if (!key()) {
                    return false;
                }
                break;
            case TokenKind::list:
                if (!open(false)) {
                    return false;
                }
                if (*at_ == ']') {
                    return true;
                }
                break;
            case TokenKind::other:
                return false;
            }
        }
    }

    /// To be called after a value: closes the lists and objects that end there.
    Next end_of_value() {
        while (true) {
            skip_space();
            const bool object = (objects_ & 1U) != 0;
            if (*at_ == ',') {
                ++at_;
                skip_space();
                return !object || key() ? Next::value : Next::wrong;
            }
            if (*at_ != (object ? '}' : ']')) {
                return Next::wrong;
            }
            ++at_;
            --depth_;
            objects_ >>= 1U;
            if (depth_ == 0 || at_ == end_) {
                return depth_ == 0 ? Next::nothing : Next::wrong;
            }
        }
    }

    /// Opens a list or object. Returns false if it would be nested too deep.
    bool open(bool object) {
        ++at_;
        ++depth_;
        objects_ = objects_ << 1U | (object ? 1U : 0U);
        skip_space();
        return depth_ <= kMaxJsonDepth;
    }

    bool key() {
        if (*at_ != '"' || !string()) {
            return false;
        }
        skip_space();
        if (!take(':')) {
            return false;
        }
        skip_space();
        return true;
    }

    bool take_word(std::string_view word) {
        const bool there =
            std::string_view{at_, static_cast<std::size_t>(end_ - at_)}.starts_with(word);
        at_ += there ? word.size() : 0;
        return there;
    }

    bool digits() {
        const char* const begin = at_;
        while (is_digit(*at_)) {
            ++at_;
        }
        return at_ != begin;
    }

    bool number() {
        take('-');
        if (!take('0') && !digits()) {
            return false;
        }
        if (take('.') && !digits()) {
            return false;
        }
        if (!take('e') && !take('E')) {
            return true;
        }
        static_cast<void>(take('+') || take('-'));
        return digits();
    }

    bool string() {
        ++at_;
        // Most strings are short and have no escapes.
        const std::ptrdiff_t plain = end_ - at_ >= kPiece ? plain_in_piece() : kPiece;
        if (plain != kPiece && at_[plain] == '"') {
            at_ += plain + 1;
            return true;
        }
        return rest_of_string();
    }

    [[gnu::noinline]] bool rest_of_string() {
        while (true) {
            skip_plain();
            if (at_ == end_) {
                return false;
            }
            if (*at_ == '"') {
                ++at_;
                return true;
            }
            if (*at_ == '\\' ? !escape() : !long_point()) {
                return false;
            }
        }
    }

    /// Skips the characters of a string that are plain ASCII.
    void skip_plain() {
        while (end_ - at_ >= kPiece) {
            const std::ptrdiff_t plain = plain_in_piece();
            at_ += plain;
            if (plain != kPiece) {
                return;
            }
        }
        while (at_ != end_ && is_plain(*at_)) {
            ++at_;
        }
    }

    static bool is_plain(char character) {
        return static_cast<signed char>(character) >= ' ' && character != '"' && character != '\\';
    }

    /// Returns the number of plain bytes at the start of the next kPiece bytes.
    [[nodiscard]] std::ptrdiff_t plain_in_piece() const {
#if defined(__SSE2__)
        __m128i piece;
        std::memcpy(&piece, at_, kPiece);
        // As signed numbers, control bytes and non-ASCII bytes are below a space.
        const __m128i special =
            _mm_or_si128(_mm_cmplt_epi8(piece, _mm_set1_epi8(' ')),
                         _mm_or_si128(_mm_cmpeq_epi8(piece, _mm_set1_epi8('"')),
                                      _mm_cmpeq_epi8(piece, _mm_set1_epi8('\\'))));
        const auto mask = static_cast<unsigned>(_mm_movemask_epi8(special));
        return std::countr_zero(mask | 1U << kPiece);
#else
        return std::find_if_not(at_, at_ + kPiece, is_plain) - at_;
#endif
    }

    bool escape() {
        constexpr std::ptrdiff_t kPoint = 6; // length of an escape such as \u00e9
        constexpr std::string_view kShort = R"("\/bfnrt)";
        if (end_ - at_ < 2) {
            return false;
        }
        if (at_[1] != 'u') {
            const bool known = kShort.find(at_[1]) != std::string_view::npos;
            at_ += 2;
            return known;
        }
        if (end_ - at_ < kPoint || !std::all_of(at_ + 2, at_ + kPoint, is_hex)) {
            return false;
        }
        at_ += kPoint;
        return true;
    }

    /// Reads a code point outside ASCII. Rejects overlong forms, surrogates, and values beyond U+10FFFF.
    bool long_point() {
        constexpr std::uint32_t kSurrogates = 0xD800;
        constexpr std::uint32_t kBehindSurrogates = 0xE000;
        constexpr std::uint32_t kLast = 0x10FFFF;
        constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
        const auto lead = static_cast<unsigned char>(*at_);
        const auto size = static_cast<std::ptrdiff_t>(std::countl_one(lead));
        if (size < 2 || size > 4 || end_ - at_ < size) {
            return false;
        }
        std::uint32_t point = lead & (0xFFU >> (static_cast<unsigned>(size) + 1U));
        for (std::ptrdiff_t i = 1; i < size; ++i) {
            const auto byte = static_cast<unsigned char>(at_[i]);
            if ((byte & 0xC0U) != 0x80U) {
                return false;
            }
            point = point << 6U | (byte & 0x3FU);
        }
        at_ += size;
        return point >= kLeast[static_cast<std::size_t>(size)] && point <= kLast &&
               (point < kSurrogates || point >= kBehindSurrogates);
    }

    const char* at_;
    const char* end_;
    unsigned depth_ = 0;
    /// One bit for each open bracket, the innermost lowest: 1 for an object, 0 for a list.
    std::uint64_t objects_ = 0;
};

} // namespace

bool is_json_object(std::string_view text) {
    text = text.substr(0, text.find_last_not_of(' ') + 1);
    return text.starts_with('{') && text.ends_with('}') && JsonChecker{text}.is_object();
}

bool has_control_bytes(std::string_view text) {
    constexpr std::size_t kPiece = 256; // number of bytes checked at once
    while (!text.empty()) {
        const std::string_view piece = text.substr(0, kPiece);
        unsigned found = 0;
        for (const char character : piece) {
            found |= static_cast<unsigned char>(character) < ' ' ? 1U : 0U;
        }
        if (found != 0) {
            return true;
        }
        text.remove_prefix(piece.size());
    }
    return false;
}

} // namespace tw::record
