#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::sink {

/// What is missing where it should have been written.
struct Loss {
    std::uint64_t count = 0; ///< records, or packets
    std::int64_t since = 0;  ///< nanoseconds since 1970-01-01 UTC
    std::string_view cause;
};

/// What a recording consists of: lines of records, or blocks of a capture. It is cut only between them.
/// Texts that are asked about begin with a whole one.
class Units {
  public:
    Units() = default;
    Units(const Units&) = delete;
    Units& operator=(const Units&) = delete;
    Units(Units&&) = delete;
    Units& operator=(Units&&) = delete;
    virtual ~Units() = default;

    /// What each file of them begins with, and what goes on behind those of another run.
    [[nodiscard]] virtual std::string head() const { return {}; }

    /// Bytes of the first units that are `size` bytes together, or a bit more; of all where they are
    /// less.
    [[nodiscard]] virtual std::size_t front(std::string_view text, std::size_t size) const = 0;
    /// Bytes of the units that are whole.
    [[nodiscard]] virtual std::size_t whole(std::string_view text) const = 0;
    /// Records, or packets, that are lost with the text.
    [[nodiscard]] virtual std::uint64_t count(std::string_view text) const = 0;

    /// Where the last whole unit of a file ends; nothing when it cannot be read.
    [[nodiscard]] virtual std::optional<std::uint64_t> end_in(int file,
                                                              std::uint64_t size) const = 0;

    /// What the text lacks to be a whole unit, if it lacks nothing but its end; empty: it lacks more.
    [[nodiscard]] virtual std::string_view missing_end(std::string_view /*text*/) const {
        return {};
    }

    /// Whether something is in the file that would be spoilt by them.
    [[nodiscard]] virtual bool foreign(int /*file*/) const { return false; }

    /// The same of a text that begins so.
    [[nodiscard]] virtual bool is_foreign(std::string_view /*begin*/) const { return false; }

    /// Stands where some are missing.
    [[nodiscard]] virtual std::string loss(const Loss& loss, std::int64_t now) const = 0;

    /// "records", for people.
    [[nodiscard]] virtual std::string_view name() const = 0;
};

[[nodiscard]] const Units& record_lines();
/// Of pcapng, as CaptureBlocks makes them.
[[nodiscard]] const Units& capture_units();

} // namespace tw::sink
