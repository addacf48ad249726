#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>

namespace tw::fuzz {

/// What must hold for every input; on in every build.
inline void demand(bool condition) {
    if (!condition) {
        std::abort();
    }
}

/// Whether a view lies inside a block; an empty one may lie anywhere.
inline bool lies_in(std::span<const std::byte> view, std::span<const std::byte> block) {
    return view.empty() || (view.data() >= block.data() &&
                            view.data() + view.size() <= block.data() + block.size());
}

} // namespace tw::fuzz
