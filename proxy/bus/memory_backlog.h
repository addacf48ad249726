#pragma once

#include "proxy/bus/store.h"

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace tw::bus {

/// Lines in memory of limited size: when it is full, who appends has to wait.
class MemoryBacklog final : public Store {
  public:
    /// A minute of a server with 64 players.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;

    MemoryBacklog(std::string run, std::string server, std::size_t max_bytes = kMaxBytes)
        : run_{std::move(run)}, server_{std::move(server)}, max_bytes_{max_bytes} {}

    bool append(std::string_view block) override;
    [[nodiscard]] bool has_room() const override;
    [[nodiscard]] std::uint64_t bytes() const override;

    [[nodiscard]] const std::string& run() const override { return run_; }

    [[nodiscard]] const std::string& server() const override { return server_; }

    [[nodiscard]] bool read(std::uint64_t from, Lines& lines) override;
    void settle(std::uint64_t line, std::uint64_t place) override;
    [[nodiscard]] std::uint64_t settled() const override;
    [[nodiscard]] std::optional<std::uint64_t> place() const override;
    [[nodiscard]] std::uint64_t last() const override;

  private:
    std::string run_;
    std::string server_;
    std::size_t max_bytes_;
    mutable std::mutex mutex_;
    std::deque<Lines> blocks_;
    std::size_t bytes_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t settled_ = 0;
    std::optional<std::uint64_t> place_;
};

} // namespace tw::bus
