#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/pfr/core.hpp>

namespace tw::base {

/// A type for which any bytes form a valid value: numbers, enumerators, and structs of these. bool
/// is not such a type, because only the bytes 0 and 1 are valid.
template <typename T>
concept AnyBytesAreValid = std::has_unique_object_representations_v<T> && !std::same_as<T, bool>;

/// Appends values to a byte vector: numbers, texts, lists, and structs without base classes, whose
/// members follow one another. Numbers keep this host's byte order, so only an ArchiveReader on the
/// same host can read them. Texts and lists begin with their length in 32 bits.
class ArchiveWriter {
  public:
    explicit ArchiveWriter(std::vector<std::byte>& out) : out_{&out} {}

    template <typename T>
    void write(const T& value) {
        if constexpr (AnyBytesAreValid<T> || std::same_as<T, bool>) {
            append(std::as_bytes(std::span{&value, 1}));
        } else if constexpr (std::is_aggregate_v<T>) {
            boost::pfr::for_each_field(value, [this](const auto& each) { this->write(each); });
        } else {
            write(static_cast<std::uint32_t>(value.size()));
            if constexpr (AnyBytesAreValid<typename T::value_type>) {
                append(std::as_bytes(std::span{value}));
            } else {
                std::ranges::for_each(value, [this](const auto& each) { this->write(each); });
            }
        }
    }

  private:
    void append(std::span<const std::byte> bytes) {
        out_->insert(out_->end(), bytes.begin(), bytes.end());
    }

    std::vector<std::byte>* out_;
};

/// Reads values that an ArchiveWriter wrote. The bytes may be malformed. After the first truncated
/// value, no further values are read. The caller must check the values: an enumerator can have any
/// value, and a list any length.
class ArchiveReader {
  public:
    explicit ArchiveReader(std::span<const std::byte> in) : in_{in} {}

    template <typename T>
    void read(T& value) {
        if constexpr (std::same_as<T, bool>) {
            std::uint8_t byte = 0;
            read(byte);
            value = byte != 0;
        } else if constexpr (AnyBytesAreValid<T>) {
            take_bytes(std::as_writable_bytes(std::span{&value, 1}));
        } else if constexpr (std::is_aggregate_v<T>) {
            boost::pfr::for_each_field(value, [this](auto& each) { this->read(each); });
        } else {
            std::uint32_t length = 0;
            read(length);
            value.clear();
            if constexpr (AnyBytesAreValid<typename T::value_type>) {
                failed_ = failed_ || length > in_.size() / sizeof(typename T::value_type);
                value.resize(failed_ ? 0 : length);
                take_bytes(std::as_writable_bytes(std::span{value}));
            } else { // `length` may be wrong, so no memory is allocated in advance
                for (std::uint32_t i = 0; i < length && !failed_; ++i) {
                    read(value.emplace_back());
                }
            }
        }
    }

    [[nodiscard]] bool failed() const noexcept { return failed_; }

    /// Returns whether all reads succeeded and no bytes are left.
    [[nodiscard]] bool is_complete() const noexcept { return !failed_ && in_.empty(); }

  private:
    void take_bytes(std::span<std::byte> bytes) {
        failed_ = failed_ || bytes.size() > in_.size();
        if (!failed_ && !bytes.empty()) {
            std::memcpy(bytes.data(), in_.data(), bytes.size());
            in_ = in_.subspan(bytes.size());
        }
    }

    std::span<const std::byte> in_;
    bool failed_ = false;
};

template <typename State>
[[nodiscard]] std::vector<std::byte> to_archive(const State& state) {
    std::vector<std::byte> out;
    ArchiveWriter{out}.write(state);
    return out;
}

/// Decodes the result of to_archive(). Returns nullopt if `in` is not exactly one archived State.
template <typename State>
[[nodiscard]] std::optional<State> from_archive(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    std::optional<State> state{std::in_place};
    reader.read(*state);
    return reader.is_complete() ? std::move(state) : std::nullopt;
}

} // namespace tw::base
