#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>

namespace tw::fuzz {

/// Aborts if a condition that must hold for every input is false. Active in every build.
inline void demand(bool condition) {
    if (!condition) {
        std::abort();
    }
}

/// True if the view lies inside the block. An empty view may lie anywhere.
inline bool lies_in(std::span<const std::byte> view, std::span<const std::byte> block) {
    return view.empty() || (view.data() >= block.data() &&
                            view.data() + view.size() <= block.data() + block.size());
}

} // namespace tw::fuzz
