#pragma once

#include "proxy/inspect/suspects.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::inspect {

/// Why the checksums differ, as far as it is known.
struct MismatchCause {
    /// "duplicate_update", "odd_delta", "damaged_value", "ambiguous" or "unknown".
    std::string_view name{};
    std::string_view sentence{};
    /// The item, and its value or update in the delta's ints; only where no other can be meant.
    std::optional<snapshot::ItemKey> key{};
    std::optional<std::size_t> int_index{};
    std::string field{}; ///< of the item, if it is one value
    /// Otherwise the items that may be meant, or the values, the likeliest first.
    std::vector<snapshot::ItemKey> odd_items{};
    std::vector<Suspects::Suspect> damaged{};
};

/// Looks for what explains the difference of the checksums exactly: a second item with the same
/// key, or one value of the delta with one flipped bit. `suspects`: all, the likeliest first.
[[nodiscard]] MismatchCause explain_mismatch(const Mismatch& mismatch,
                                             std::vector<Suspects::Suspect> suspects);

} // namespace tw::inspect
