#pragma once

#include "proxy/bus/backlog.h"

#include <cstdint>
#include <string_view>

namespace tw::bus {

/// A backlog that takes lines.
class Store : public Backlog {
  public:
    /// Whole lines. False: not now, and nothing of it is kept.
    virtual bool append(std::string_view block) = 0;

    [[nodiscard]] virtual bool has_room() const = 0;

    /// Whether it will never take any again.
    [[nodiscard]] virtual bool is_gone() const { return false; }

    /// errno of what keeps it from taking lines; 0: nothing does.
    [[nodiscard]] virtual int error() const { return 0; }

    /// Tries again what failed.
    virtual void mend() {}

    /// Lines that had to make room for younger ones.
    [[nodiscard]] virtual std::uint64_t given_up() const { return 0; }

    /// Losses that no line reports: lines given up, and what those had reported.
    [[nodiscard]] virtual std::uint64_t unreported() const { return 0; }

    /// The last line reports so many of them.
    virtual void on_reported(std::uint64_t /*lost*/) {}

    /// Lines that wait, with what earlier runs left.
    [[nodiscard]] virtual std::uint64_t waiting() const {
        const std::uint64_t before = settled(); // first: the other one only grows
        return last() - before;
    }

    /// Bytes that wait.
    [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

} // namespace tw::bus
