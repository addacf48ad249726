#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace tw::fuzz {

/// Reads values from a fuzzer's input. After the input's end, every value is zero.
class Input {
  public:
    explicit Input(std::span<const std::byte> bytes) : bytes_{bytes} {}

    Input(const std::uint8_t* data, std::size_t size)
        : Input{std::as_bytes(std::span{data, size})} {}

    template <typename T>
    T take() {
        static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, std::byte>);
        T value{};
        const auto bytes = take_bytes(sizeof(T));
        std::memcpy(&value, bytes.data(), bytes.size());
        return value;
    }

    /// Returns a number below `limit`. Uses one byte of the input if that suffices.
    std::size_t below(std::size_t limit) {
        constexpr std::size_t kByte = 256;
        return (limit <= kByte ? take<std::uint8_t>() : take<std::uint32_t>()) % limit;
    }

    /// Returns the next bytes, or the rest of the input if it is shorter.
    std::span<const std::byte> take_bytes(std::size_t count) {
        const auto taken = bytes_.first(std::min(count, bytes_.size()));
        bytes_ = bytes_.subspan(taken.size());
        return taken;
    }

    void fill(std::span<std::byte> out) {
        std::fill(out.begin(), out.end(), std::byte{0});
        const auto bytes = take_bytes(out.size());
        std::copy(bytes.begin(), bytes.end(), out.begin());
    }

    [[nodiscard]] bool empty() const { return bytes_.empty(); }

  private:
    std::span<const std::byte> bytes_;
};

} // namespace tw::fuzz
