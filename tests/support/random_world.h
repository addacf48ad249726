#pragma once

#include "tests/support/snapshot_messages.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace tw::test {

/// Gives a number below the limit it is handed: from a seed, or from a fuzzer's input.
using Choose = std::function<std::size_t(std::size_t limit)>;

/// A world as a server could have it: items of agreed types, of types whose size is written, and of
/// types named by a UUID, within the limits of a snapshot. An item of a key always has the same size.
class RandomWorld {
  public:
    explicit RandomWorld(Choose choose) : choose_{std::move(choose)} {}

    /// Some items come, go or change; now and then many of them.
    void step();

    [[nodiscard]] const Items& items() const { return items_; }

  private:
    /// More would not fit into 64 parts when every int takes five bytes.
    static constexpr std::size_t kMaxInts = 8000;

    [[nodiscard]] snapshot::ItemKey any_key();
    [[nodiscard]] std::int32_t any_value();
    void change_one();

    Choose choose_;
    Items items_;
    std::size_t num_ints_ = 0;
};

} // namespace tw::test
