#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tw::bus {

/// Whole lines that follow each other.
struct Lines {
    std::uint64_t first = 0; ///< number of the first one
    std::string text{};
};

/// Where a run's lines stand until they are in the stream, numbered from 1. One thread appends, one
/// reads and settles; it is safe for both.
class Backlog {
  public:
    Backlog() = default;
    Backlog(const Backlog&) = delete;
    Backlog& operator=(const Backlog&) = delete;
    Backlog(Backlog&&) = delete;
    Backlog& operator=(Backlog&&) = delete;
    virtual ~Backlog() = default;

    /// A UUID: with the number of a line it makes the id of its message.
    [[nodiscard]] virtual const std::string& run() const = 0;
    /// As a part of subjects.
    [[nodiscard]] virtual const std::string& server() const = 0;

    /// Lines from this number on, or from the next that is not lost. False: there are none, for now.
    [[nodiscard]] virtual bool read(std::uint64_t from, Lines& lines) = 0;

    /// All up to `line` are in the stream or lost; what else of the run is in the stream stands behind
    /// `place`.
    virtual void settle(std::uint64_t line, std::uint64_t place) = 0;

    [[nodiscard]] virtual std::uint64_t settled() const = 0;

    /// Whether what is not settled is there for the next run.
    [[nodiscard]] virtual bool lasting() const { return false; }

    /// As settle was told last; nothing: nothing of it was ever published.
    [[nodiscard]] virtual std::optional<std::uint64_t> place() const = 0;
    /// The number of the last line; 0: there was none.
    [[nodiscard]] virtual std::uint64_t last() const = 0;
};

} // namespace tw::bus
