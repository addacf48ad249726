#pragma once

#include "proxy/base/endpoint.h"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tw::base {

/// Means that `T` is State or const State. A struct can be archived if its namespace has a function
/// archive_members(), which lists the members for writing and for reading:
///
/// auto archive_members(MaybeConst<Place> auto& place) { return std::tie(place.x, place.y); }
template <typename T, typename State>
concept MaybeConst = std::same_as<std::remove_const_t<T>, State>;

auto archive_members(MaybeConst<Endpoint> auto& endpoint) {
    return std::tie(endpoint.address, endpoint.scope, endpoint.port, endpoint.v6);
}

template <typename T>
concept HasMembers = requires(T& value) {
    archive_members(value);
};

/// A type for which all bytes are a valid value: numbers, enumerators, and structs of these. bool
/// is not such a type, because only the bytes 0 and 1 are valid.
template <typename T>
concept Raw =
    std::has_unique_object_representations_v<T> && !std::same_as<T, bool> && !HasMembers<T>;

/// Appends values to a byte vector. Numbers keep this host's byte order, so only an ArchiveReader
/// on the same host can read them. Texts and lists begin with their length in 32 bits.
class ArchiveWriter {
  public:
    explicit ArchiveWriter(std::vector<std::byte>& out) : out_{&out} {}

    template <typename T>
    void write(const T& value) {
        if constexpr (HasMembers<const T>) {
            std::apply([this](const auto&... each) { (this->write(each), ...); },
                       archive_members(value));
        } else if constexpr (Raw<T> || std::same_as<T, bool>) {
            append(std::as_bytes(std::span{&value, 1}));
        } else {
            write(static_cast<std::uint32_t>(value.size()));
            if constexpr (Raw<typename T::value_type>) {
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
        if constexpr (HasMembers<T>) {
            std::apply([this](auto&... each) { (this->read(each), ...); }, archive_members(value));
        } else if constexpr (std::same_as<T, bool>) {
            std::uint8_t byte = 0;
            read(byte);
            value = byte != 0;
        } else if constexpr (Raw<T>) {
            take_bytes(std::as_writable_bytes(std::span{&value, 1}));
        } else {
            std::uint32_t length = 0;
            read(length);
            value.clear();
            if constexpr (Raw<typename T::value_type>) {
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

    /// Whether all reads succeeded and no bytes are left.
    [[nodiscard]] bool done() const noexcept { return !failed_ && in_.empty(); }

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
    return reader.done() ? std::move(state) : std::nullopt;
}

} // namespace tw::base
