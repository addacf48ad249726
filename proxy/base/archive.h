#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace tw::base {

/// Writes values one after the other. One function template can both write and read a value, with an
/// ArchiveWriter or an ArchiveReader, so that the two formats cannot differ:
///
/// void archive(auto& archive, auto& place) { archive.number(place.x); archive.flag(place.here); }
///
/// Layout:  numbers in the machine's byte order, because writer and reader run on one host. Lists and
/// texts begin with their length in 32 bits.
class ArchiveWriter {
  public:
    explicit ArchiveWriter(std::vector<std::byte>& out) : out_{&out} {}

    template <std::integral Number>
    void number(Number value) {
        raw(std::as_bytes(std::span{&value, 1}));
    }

    void flag(bool value) { number(static_cast<std::uint8_t>(value ? 1 : 0)); }

    /// Writes an enumerator. `last`: the last enumerator, which only a reader needs.
    template <typename Enum>
    void choice(Enum value, Enum /*last*/) {
        number(static_cast<std::underlying_type_t<Enum>>(value));
    }

    void raw(std::span<const std::byte> bytes) {
        out_->insert(out_->end(), bytes.begin(), bytes.end());
    }

    /// Writes a list: calls `each(archive, element)` for each element. `most`: the most elements that
    /// a reader accepts.
    template <typename List, typename Each>
    void list(const List& values, std::size_t /*most*/, Each&& each) {
        number(static_cast<std::uint32_t>(values.size()));
        for (const auto& value : values) {
            each(*this, value);
        }
    }

    /// Writes a text or a vector of bytes. `most`: the most bytes that a reader accepts.
    template <typename Bytes>
    void bytes(const Bytes& value, std::size_t /*most*/) {
        number(static_cast<std::uint32_t>(value.size()));
        raw(std::as_bytes(std::span{value}));
    }

  private:
    std::vector<std::byte>* out_;
};

/// Reads the output of an ArchiveWriter from an untrusted source. After the first invalid value,
/// all further values read as zero and done() is false.
class ArchiveReader {
  public:
    explicit ArchiveReader(std::span<const std::byte> in) : in_{in} {}

    template <std::integral Number>
    void number(Number& value) {
        value = {};
        raw(std::as_writable_bytes(std::span{&value, 1}));
    }

    void flag(bool& value) {
        std::uint8_t byte = 0;
        number(byte);
        value = byte == 1;
        failed_ = failed_ || byte > 1;
    }

    /// Reads an enumerator. Values above `last` are invalid.
    template <typename Enum>
    void choice(Enum& value, Enum last) {
        std::underlying_type_t<Enum> number_of = 0;
        number(number_of);
        failed_ = failed_ || number_of > static_cast<std::underlying_type_t<Enum>>(last);
        value = failed_ ? Enum{} : static_cast<Enum>(number_of);
    }

    void raw(std::span<std::byte> bytes) {
        failed_ = failed_ || bytes.size() > in_.size();
        if (failed_) {
            std::ranges::fill(bytes, std::byte{0});
            return;
        }
        if (!bytes.empty()) {
            std::memcpy(bytes.data(), in_.data(), bytes.size());
        }
        in_ = in_.subspan(bytes.size());
    }

    template <typename List, typename Each>
    void list(List& values, std::size_t most, Each&& each) {
        values.clear();
        const std::size_t count = length(most);
        values.reserve(count); // at most in_.size(), because each element takes at least one byte
        for (std::size_t i = 0; i < count && !failed_; ++i) {
            each(*this, values.emplace_back());
        }
    }

    template <typename Bytes>
    void bytes(Bytes& value, std::size_t most) {
        value.resize(length(most));
        raw(std::as_writable_bytes(std::span{value}));
    }

    /// Marks the input as invalid. For callers that read a value which is not allowed.
    void fail() noexcept { failed_ = true; }

    /// Whether all values were valid and the input was read to its end.
    [[nodiscard]] bool done() const noexcept { return !failed_ && in_.empty(); }

    [[nodiscard]] bool failed() const noexcept { return failed_; }

  private:
    [[nodiscard]] std::size_t length(std::size_t most) {
        std::uint32_t count = 0;
        number(count);
        failed_ = failed_ || count > most || count > in_.size();
        return failed_ ? 0 : count;
    }

    std::span<const std::byte> in_;
    bool failed_ = false;
};

} // namespace tw::base
