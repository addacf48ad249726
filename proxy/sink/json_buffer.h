#pragma once

#include "proxy/sink/json_text.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace tw::sink {

/// Text under construction. Appending never checks for room beyond what `reserve` promised for the
/// next calls: every public appender reserves for itself, so that callers cannot get it wrong.
class JsonBuffer {
  public:
    /// Longest text of a 64-bit int.
    static constexpr std::size_t kMaxIntChars = 20;

    void clear() { size_ = 0; }

    /// Drops what was appended after `size` was taken.
    void truncate(std::size_t size) { size_ = size; }

    /// Puts another character where one stands.
    void replace(std::size_t at, char character) { text_[at] = character; }

    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] bool empty() const { return size_ == 0; }

    [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

    [[nodiscard]] char back() const { return text_[size_ - 1]; }

    /// Room for `bytes` bytes behind what stands; what was written there up to `end` is appended by
    /// `took`.
    [[nodiscard]] char* room(std::size_t bytes) { return reserve(bytes); }

    void took(const char* end) { size_ = static_cast<std::size_t>(end - text_.data()); }

    void append(const Literal& literal) { took(literal.put(reserve(literal.room()))); }

    void append(std::string_view text) {
        if (text.empty()) {
            return; // its pointer may be null, which memcpy must not get
        }
        std::memcpy(reserve(text.size()), text.data(), text.size());
        size_ += text.size();
    }

    void append(char character) {
        *reserve(1) = character;
        ++size_;
    }

    void append_int(std::int64_t value);

    void append_int(std::int32_t value) { took(put_int(reserve(kIntRoom), value)); }

    /// Ints separated by commas, in brackets.
    void append_ints(std::span<const std::int32_t> values);
    /// A quoted string: always valid UTF-8 (what is not becomes U+FFFD) and valid JSON.
    void append_string(std::string_view text);
    /// A quoted string of lower-case hex digits.
    void append_hex(std::span<const std::byte> bytes);
    /// A number with up to three decimals.
    void append_fixed(double value);

  private:
    char* reserve(std::size_t bytes) {
        if (text_.size() - size_ < bytes) {
            grow(bytes);
        }
        return text_.data() + size_;
    }

    void grow(std::size_t bytes);

    std::vector<char> text_;
    std::size_t size_ = 0;
};

} // namespace tw::sink
