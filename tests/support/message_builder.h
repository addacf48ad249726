#pragma once

#include "proxy/wire/message.h"
#include "snapshot/cursor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

/// Builds a message field by field; bytes() returns it. Checks nothing, so that hostile messages
/// can be built, too.
class MessageBuilder {
  public:
    MessageBuilder() = default;

    /// Begins with the head of this message.
    explicit MessageBuilder(const wire::MessageSpec& spec) {
        number((spec.number << 1) | (spec.system ? 1 : 0));
        if (spec.number == 0) {
            uuid(spec.uuid);
        }
    }

    MessageBuilder& number(std::int32_t value) {
        snapshot::encode_varint(value, bytes_);
        return *this;
    }

    MessageBuilder& string(std::string_view text) {
        return raw(std::as_bytes(std::span{text.data(), text.size()})).byte(0);
    }

    /// Appends a number as connless packets write it.
    MessageBuilder& decimal(std::int64_t value) { return string(std::to_string(value)); }

    MessageBuilder& raw(std::span<const std::byte> data) {
        bytes_.insert(bytes_.end(), data.begin(), data.end());
        return *this;
    }

    /// Appends a text without a NUL.
    MessageBuilder& text(std::string_view characters) {
        return raw(std::as_bytes(std::span{characters.data(), characters.size()}));
    }

    MessageBuilder& uuid(const snapshot::Uuid& value) {
        return raw(std::as_bytes(std::span{value}));
    }

    MessageBuilder& byte(std::uint8_t value) {
        bytes_.push_back(std::byte{value});
        return *this;
    }

    MessageBuilder& u16_be(std::uint16_t value) {
        return byte(static_cast<std::uint8_t>(value >> 8U))
            .byte(static_cast<std::uint8_t>(value & 0xFFU));
    }

    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

} // namespace tw::test
