#include "proxy/run/page_items.h"

#include "proxy/record/snapshot_names.h"

namespace tw::run {

snapshot::SnapshotView PageItems::of(const record::SnapshotRecord& record) {
    if (record::dialect_of(record) == snapshot::Dialect::six) {
        return record.items;
    }
    views_.clear();
    views_.push_back(game::read_seven_view(record.head.session, record.client_version.value_or(0),
                                           record.items, record.roster));
    const auto own = views_.front().own;
    seven_as_six_.tell(views_);
    items_.clear();
    const snapshot::SnapshotView& told = views_.front().items;
    for (std::size_t i = 0; i < told.size(); ++i) {
        const snapshot::ItemView item = told[i];
        ints_.assign(item.data.begin(), item.data.end());
        if (own && item.key == snapshot::ItemKey{snapshot::kPlayerInfoType, *own} &&
            !ints_.empty()) {
            ints_.front() = 1; // 0.6 says in the snapshot whose it is
        }
        items_.append(item.key, ints_);
    }
    return items_.view();
}

} // namespace tw::run
