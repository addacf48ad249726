#pragma once

#include "proxy/admin/feed.h"
#include "proxy/admin/wishes.h"
#include "proxy/wire/mod_description.h"
#include "snapshot/object_set.h"

#include <memory>
#include <string>

#include <tl/expected.hpp>

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::run {

/// What the live page knows of the language of filters and of lines of records.

/// A filter for lines of records.
/// Errors: those of the language; a key that no line of the page's log has.
[[nodiscard]] tl::expected<admin::LineFilter, admin::Complaint>
make_line_filter(const std::string& text, const wire::ModDescription& mod);

/// What filters can name, for completion: keys of records and of items, types of items, and the words
/// that a key can hold.
[[nodiscard]] std::string filter_keys_json(const wire::ModDescription& mod);

/// A snapshot as a line of records, with all its items; `physics` may be null.
[[nodiscard]] std::string snapshot_line(const admin::SeenSnapshot& seen,
                                        const snapshot::SnapshotView& items,
                                        std::shared_ptr<const map::Physics> physics,
                                        const snapshot::ObjectSet& objects);

} // namespace tw::run
