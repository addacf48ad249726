#pragma once

#include "proxy/game/seven_as_six.h"
#include "proxy/game/view.h"
#include "proxy/record/records.h"
#include "snapshot/object_set.h"
#include "snapshot/snapshot.h"

#include <vector>

namespace tw::run {

/// Snapshots as the page knows them: in the objects of 0.6, as worlds tell those of 0.7, too.
class PageItems {
  public:
    /// `objects` has to outlive it.
    explicit PageItems(const snapshot::ObjectSet& objects) : seven_as_six_{objects} {}

    /// Lives as long as the record, and until the next call. Precondition: it was rebuilt.
    [[nodiscard]] snapshot::SnapshotView of(const record::SnapshotRecord& record);

  private:
    game::SevenAsSix seven_as_six_;
    std::vector<game::View> views_; ///< kept for its memory
    snapshot::Snapshot items_;
    std::vector<std::int32_t> ints_;
};

} // namespace tw::run
