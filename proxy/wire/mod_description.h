#pragma once

#include "proxy/wire/message_set.h"
#include "snapshot/object_set.h"

namespace tw::wire {

/// What a run knows of objects and messages: the tables, and what a mod describes.
struct ModDescription {
    snapshot::ObjectSet objects{};
    MessageSet messages{};

    /// The tables alone.
    [[nodiscard]] static const ModDescription& standard() {
        static const ModDescription description;
        return description;
    }
};

} // namespace tw::wire
