#pragma once

#include <string>
#include <string_view>

namespace tw::analyze {

struct Explanation;

/// Returns where to look for the cause of a finding about snapshots; empty if nothing is known.
/// `id`: the finding's id. `name`: the record's member `name`, which tells causes apart.
[[nodiscard]] std::string_view find_cause_hint(std::string_view id, std::string_view name);

/// Returns a text about the objects of another size that are the finding's cause; empty if none is.
[[nodiscard]] std::string size_cause_text(const Explanation& story);

/// Returns what to change if the size of objects is the finding's cause; empty if it is not.
[[nodiscard]] std::string size_change_text(const Explanation& story);

/// Returns a line that says which snapshot is the first with the size that a snapshot.size_differs
/// finding names; empty for other findings.
[[nodiscard]] std::string first_snapshot_text(const Explanation& story);

} // namespace tw::analyze
