#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/relay/ring.h"

#include <cstddef>

namespace tw::test {

struct RingMemory {
    base::SharedMemory memory;
};

/// A ring in memory that it allocates itself.
class LocalRing : RingMemory, public relay::Ring {
  public:
    explicit LocalRing(std::size_t bytes)
        : RingMemory{base::SharedMemory::create(shared_memory_size(bytes))}, Ring{memory.bytes()} {}
};

} // namespace tw::test
