#pragma once

#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <cstdint>

namespace tw::game {

/// Two views of a tick that say different things of what is the same for everybody.
struct Difference {
    snapshot::ItemKey key{};
    const snapshot::ObjectSpec* object = nullptr;
    const snapshot::FieldSpec* field = nullptr;
    std::int32_t value = 0; ///< of `session`
    std::int32_t other = 0; ///< of `other_session`
    std::uint32_t session = 0;
    std::uint32_t other_session = 0;
};

} // namespace tw::game
