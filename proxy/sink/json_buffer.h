#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

/// Functions that write JSON through a plain pointer, without checks. The memory must be large
/// enough; JsonBuffer provides such memory.
namespace tw::sink {

/// A constant piece of JSON that is written often. It is stored with padding, so that it can be
/// copied in steps of a fixed size.
class JsonLiteral {
  public:
    static constexpr std::size_t kPutStepBytes = 32;

    JsonLiteral() = default;

    explicit JsonLiteral(std::string_view text)
        : text_(text.size() + kPutStepBytes), size_{text.size()} {
        std::memcpy(text_.data(), text.data(), text.size());
    }

    [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] std::size_t max_put_bytes() const { return size_ + kPutStepBytes; }

    [[nodiscard]] char* put(char* to) const {
        const char* const from = text_.data();
        std::memcpy(to, from, kPutStepBytes);
        for (std::size_t done = kPutStepBytes; done < size_; done += kPutStepBytes) {
            std::memcpy(to + done, from + done, kPutStepBytes);
        }
        return to + size_;
    }

  private:
    std::vector<char> text_ = std::vector<char>(kPutStepBytes);
    std::size_t size_ = 0;
};

/// Returns whether the character needs no escape in a JSON string, nor on a terminal.
constexpr bool needs_no_escape(char character) {
    const auto byte = static_cast<unsigned char>(character);
    return byte >= 0x20 && byte < 0x7F && character != '"' && character != '\\';
}

template <typename T>
T load_unaligned(const char* from) {
    T value{};
    std::memcpy(&value, from, sizeof(value));
    return value;
}

/// Returns whether all eight characters of a word need no escape.
inline bool needs_no_escape(std::uint64_t word) {
    constexpr std::uint64_t kEach = 0x0101010101010101; // kEach * b is a word of eight bytes b
    const std::uint64_t too_low = word - kEach * 0x20;
    const std::uint64_t too_high = word | (word + kEach);
    const std::uint64_t quote = (word ^ kEach * '"') - kEach;
    const std::uint64_t backslash = (word ^ kEach * '\\') - kEach;
    return ((too_low | too_high | quote | backslash) & kEach * 0x80) == 0;
}

/// Returns whether no character of the text needs an escape. Checks eight characters at a time. If
/// the length is not a multiple of eight, the last eight characters overlap the eight before.
inline bool needs_no_escape(std::string_view text) {
    const char* const end = text.data() + text.size();
    if (text.size() < sizeof(std::uint32_t)) {
        return std::all_of(text.begin(), text.end(),
                           [](char each) { return needs_no_escape(each); });
    }
    if (text.size() < sizeof(std::uint64_t)) {
        return needs_no_escape(std::uint64_t{load_unaligned<std::uint32_t>(text.data())} << 32U |
                               load_unaligned<std::uint32_t>(end - sizeof(std::uint32_t)));
    }
    bool plain = needs_no_escape(load_unaligned<std::uint64_t>(end - sizeof(std::uint64_t)));
    for (std::size_t at = 0; at + sizeof(std::uint64_t) < text.size();
         at += sizeof(std::uint64_t)) {
        plain &= needs_no_escape(load_unaligned<std::uint64_t>(text.data() + at));
    }
    return plain;
}

/// An upper limit of the bytes that put_int() writes. It may write some bytes after the number.
inline constexpr std::size_t kMaxPutIntBytes = 16;

/// The three digits of each number below 1000; element [3] is the number of leading zeros.
inline constexpr auto kThreeDigits = [] {
    std::array<std::array<char, 4>, 1000> digits{};
    for (std::size_t i = 0; i < digits.size(); ++i) {
        digits[i] = {static_cast<char>('0' + i / 100), static_cast<char>('0' + i / 10 % 10),
                     static_cast<char>('0' + i % 10),
                     static_cast<char>(i < 10 ? 2 : (i < 100 ? 1 : 0))};
    }
    return digits;
}();

/// Writes a number below 1000 without leading zeros. Returns the end of the text.
inline char* put_without_leading_zeros(char* to, std::uint32_t value) {
    const auto& digits = kThreeDigits[value];
    const std::size_t skipped = static_cast<unsigned char>(digits[3]);
    std::uint32_t word = 0;
    std::memcpy(&word, digits.data(), sizeof word);
    std::array<char, 4> text{};
    word >>= 8 * skipped;
    std::memcpy(text.data(), &word, sizeof word);
    std::memcpy(to, text.data(), sizeof word);
    return to + 3 - skipped;
}

/// Writes a number below 1000 as three digits, and overwrites the byte after them. Returns the end
/// of the digits.
inline char* put_three_digits(char* to, std::uint32_t value) {
    std::memcpy(to, kThreeDigits[value].data(), 4);
    return to + 3;
}

inline char* put_int(char* to, std::uint32_t value) {
    constexpr std::uint32_t kThousand = 1000;
    constexpr std::uint32_t kMillion = 1'000'000;
    constexpr std::uint32_t kBillion = 1'000'000'000;
    if (value < kThousand) {
        return put_without_leading_zeros(to, value);
    }
    if (value < kMillion) {
        return put_three_digits(put_without_leading_zeros(to, value / kThousand),
                                value % kThousand);
    }
    if (value < kBillion) {
        to = put_without_leading_zeros(to, value / kMillion);
    } else {
        to = put_without_leading_zeros(to, value / kBillion);
        value %= kBillion;
        to = put_three_digits(to, value / kMillion);
    }
    value %= kMillion;
    return put_three_digits(put_three_digits(to, value / kThousand), value % kThousand);
}

inline char* put_int(char* to, std::int32_t value) {
    *to = '-';
    to += value < 0 ? 1 : 0;
    const auto bits = static_cast<std::uint32_t>(value);
    return put_int(to, value < 0 ? 0U - bits : bits);
}

/// A growing text in memory. append() and append_…() make room for their data.
class JsonBuffer {
  public:
    /// The length of the longest text of a 64-bit int.
    static constexpr std::size_t kMaxIntChars = 20;

    void clear() { size_ = 0; }

    void truncate(std::size_t size) { size_ = size; }

    void replace(std::size_t at, char character) { text_[at] = character; }

    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] bool empty() const { return size_ == 0; }

    [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

    [[nodiscard]] char back() const { return text_[size_ - 1]; }

    /// Returns a pointer to at least `bytes` writable bytes after the text. After writing, call
    /// set_end() with the end of the written bytes, which appends these bytes to the text.
    [[nodiscard]] char* reserve(std::size_t bytes) {
        if (text_.size() - size_ < bytes) {
            grow(bytes);
        }
        return text_.data() + size_;
    }

    void set_end(const char* end) { size_ = static_cast<std::size_t>(end - text_.data()); }

    void append(const JsonLiteral& literal) {
        set_end(literal.put(reserve(literal.max_put_bytes())));
    }

    void append(std::string_view text) {
        if (text.empty()) {
            return; // the text's pointer may be null, which memcpy does not accept
        }
        std::memcpy(reserve(text.size()), text.data(), text.size());
        size_ += text.size();
    }

    void append(char character) {
        *reserve(1) = character;
        ++size_;
    }

    void append_int(std::int64_t value);

    void append_int(std::int32_t value) { set_end(put_int(reserve(kMaxPutIntBytes), value)); }

    /// Appends the ints in brackets, separated by commas.
    void append_ints(std::span<const std::int32_t> values);
    /// Appends the key of an object's member, with a comma before it unless the text ends with a
    /// bracket. Precondition: the name needs no escapes.
    void append_key(std::string_view name);
    /// Appends a quoted string in valid JSON and UTF-8: invalid bytes become U+FFFD.
    void append_string(std::string_view text);
    /// Appends a quoted string of lower-case hex digits.
    void append_hex(std::span<const std::byte> bytes);
    /// Appends a number with three decimals; 0 if the number is infinite or NaN.
    void append_three_decimals(double value);

  private:
    void grow(std::size_t bytes);

    std::vector<char> text_;
    std::size_t size_ = 0;
};

} // namespace tw::sink
