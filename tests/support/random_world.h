#pragma once

#include "tests/support/snapshot_messages.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace tw::test {

/// A function that returns a number below `limit`, from a random generator or a fuzzer's input.
using Choose = std::function<std::size_t(std::size_t limit)>;

/// A random world within the limits of a snapshot: items of types with agreed sizes, with written
/// sizes, and with UUIDs. Items with the same key always have the same size.
class RandomWorld {
  public:
    explicit RandomWorld(Choose choose) : choose_{std::move(choose)} {}

    /// Adds, removes and changes some items; sometimes many.
    void step();

    [[nodiscard]] const Items& items() const { return items_; }

  private:
    /// The limit of ints: more would not fit into 64 parts if each int takes five bytes.
    static constexpr std::size_t kMaxInts = 8000;

    [[nodiscard]] snapshot::ItemKey random_key();
    [[nodiscard]] std::int32_t random_value();
    void change_one_item();

    Choose choose_;
    Items items_;
    std::size_t num_ints_ = 0;
};

} // namespace tw::test
