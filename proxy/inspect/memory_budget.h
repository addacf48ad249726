#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace tw::inspect {

/// How much all sessions and maps of a run may keep, and do. It counts; who charges it sheds. May be
/// used by several threads.
class MemoryBudget {
  public:
    /// A game of 64 players on a large map keeps 160 MiB; three of them fit.
    static constexpr std::size_t kDefaultBytes = std::size_t{512} << 20U;

    explicit MemoryBudget(std::size_t limit = kDefaultBytes) : limit_{limit} {}

    /// What was charged with `before` is `after` now.
    void change(std::size_t before, std::size_t after) noexcept {
        used_.fetch_add(after - before, std::memory_order_relaxed); // wraps on purpose
    }

    [[nodiscard]] bool exceeded() const noexcept { return used() > limit_; }

    /// Shedding goes on until so much is free that it is not due again at once.
    [[nodiscard]] bool tight() const noexcept { return used() > limit_ - limit_ / 8; }

    [[nodiscard]] std::size_t used() const noexcept {
        return used_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

  private:
    std::size_t limit_;
    std::atomic<std::size_t> used_{0};
};

/// A value that is charged as long as anybody has it. `budget` outlives it; null: nobody counts.
template <typename T>
[[nodiscard]] std::shared_ptr<const T> charged(MemoryBudget* budget, T value, std::size_t bytes) {
    if (budget == nullptr) {
        return std::make_shared<const T>(std::move(value));
    }
    budget->change(0, bytes);
    return {std::make_unique<const T>(std::move(value)).release(), [budget, bytes](const T* held) {
                std::default_delete<const T>{}(held);
                budget->change(bytes, 0);
            }};
}

} // namespace tw::inspect
