#include "proxy/filter/filter.h"

#include "proxy/filter/evaluation.h"
#include "proxy/filter/parser.h"

#include <algorithm>
#include <utility>

namespace tw::filter {

using record::Record;
using record::SnapshotRecord;

namespace {

/// The items that can be asked; null for other records and what could not be rebuilt.
const SnapshotRecord* with_items(const Record& record) {
    if (const auto* const* world = std::get_if<const record::WorldRecord*>(&record)) {
        return &(*world)->shown;
    }
    const auto* const* snapshot = std::get_if<const SnapshotRecord*>(&record);
    return snapshot != nullptr && (*snapshot)->rebuilt ? *snapshot : nullptr;
}

/// A record as it was made.
class MadeRecord {
  public:
    using Item = ItemContext;

    MadeRecord(const Record& record, bool show_secrets)
        : record_{&record}, show_secrets_{show_secrets} {}

    void visit(const Key& key, Scratch& scratch, ValueVisitor& visitor) const {
        visit_record(key, *record_, show_secrets_, scratch, visitor);
    }

    static void visit_item(const Key& key, Item& item, Scratch& scratch, ValueVisitor& visitor) {
        filter::visit_item(key, item, scratch, visitor);
    }

    [[nodiscard]] bool has_items() const { return with_items(*record_) != nullptr; }

    template <typename Use>
    // NOLINTNEXTLINE(misc-no-recursion): as Evaluation::ask, which is what it calls
    void each_item(const Use& use) const {
        const SnapshotRecord* const snapshot = with_items(*record_);
        for (std::size_t i = 0; snapshot != nullptr && i < snapshot->items.size(); ++i) {
            ItemContext item{*snapshot, i};
            if (use(item)) {
                return;
            }
        }
    }

  private:
    const Record* record_;
    bool show_secrets_;
};

/// Only notes that there is a value.
class Presence final : public ValueVisitor {
  public:
    bool take(const Value& /*value*/) override { return true; }
};

} // namespace

tl::expected<Filter, FilterError> Filter::parse(std::string_view text,
                                                const FilterOptions& options) {
    auto program = parse_filter(text, options);
    if (!program) {
        return tl::unexpected{std::move(program.error())};
    }
    Filter filter;
    filter.text_ = text;
    filter.program_ = std::move(*program);
    filter.show_secrets_ = options.show_secrets;
    return filter;
}

bool Filter::matches(const Record& record) const {
    return Evaluation{program_, MadeRecord{record, show_secrets_}, nullptr}.ask(program_.root,
                                                                                nullptr);
}

bool Filter::matches(const Record& record, Observer& observer) const {
    return Evaluation{program_, MadeRecord{record, show_secrets_}, &observer}.ask(program_.root,
                                                                                  nullptr);
}

bool Filter::concerns(const Record& record) const {
    bool named = false;
    Scratch scratch;
    Presence presence;
    for (const Comparison& comparison : program_.comparisons) {
        const Key& key = comparison.key;
        if (key.scope == KeyScope::record && key.common) {
            continue;
        }
        named = true;
        if (key.scope == KeyScope::item
                ? with_items(record) != nullptr
                : visit_record(key, record, show_secrets_, scratch, presence)) {
            return true;
        }
    }
    return !named;
}

} // namespace tw::filter
