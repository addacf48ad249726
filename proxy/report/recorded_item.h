#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tw::report {

/// An item as a record shows it.
struct RecordedItem {
    std::string type;                                ///< its name, or its UUID; empty if unknown
    std::string fields;                              ///< named ones, as JSON; empty: it has none
    std::optional<std::vector<std::int64_t>> data{}; ///< raw ints, where the record has them

    /// Demos of 0.7 have it for what a session is told in messages.
    [[nodiscard]] bool of_demos() const { return type.starts_with("de_"); }
};

/// All items of a snapshot, by packed key.
using RecordedItems = std::vector<std::pair<std::uint32_t, std::shared_ptr<const RecordedItem>>>;

} // namespace tw::report
