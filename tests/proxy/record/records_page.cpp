#include "tests/proxy/record/records_page.h"

#include "proxy/record/item_schema.h"
#include "proxy/record/schema.h"

#include <algorithm>
#include <functional>
#include <type_traits>

#include <fmt/format.h>

namespace tw::test {

namespace {

/// Gathers the table of a schema, and those of the objects in it.
class TableCollector {
  public:
    template <typename Schema>
    void add(const std::string& heading, std::string_view name, const Schema& schema) {
        const std::size_t at = tables_.size();
        tables_.push_back({heading, {}});
        Objects objects;
        add_rows(at, objects, schema);
        // Objects with the same keys share a table.
        while (!objects.empty()) {
            std::string names;
            const Object first = objects.front();
            std::erase_if(objects, [&](const Object& object) {
                const bool same = object.lines == first.lines;
                if (same) {
                    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", object.name);
                }
                return same;
            });
            first.add(*this, fmt::format("### {} of `{}`", names, name));
        }
    }

    [[nodiscard]] std::vector<PageTable> take_tables() { return std::move(tables_); }

  private:
    struct Object {
        std::string_view name;
        std::vector<std::string> lines;
        std::function<void(TableCollector&, const std::string& heading)> add;
    };

    using Objects = std::vector<Object>;

    template <typename Schema>
    void add_rows(std::size_t at, Objects& objects, const Schema& schema) {
        record::for_each_row(schema, [&](const auto& row) { add_row(at, objects, row); });
    }

    template <typename Row>
    void add_row(std::size_t at, Objects& objects, const Row& row) {
        if constexpr (record::kIsTotals<Row>) {
            constexpr bool kDistribution =
                std::is_same_v<typename Row::CellType, record::Distribution>;
            for (const auto& cell : row.rows()) {
                add_line(at, cell.key, cell.sentence, kDistribution ? " A distribution." : "");
            }
        } else if constexpr (record::kIsInlined<Row>) {
            add_rows(at, objects, *row.schema);
        } else if constexpr (record::kIsObject<Row>) {
            add_line(at, row.key.name(), row.sentence, "");
            TableCollector own;
            own.add({}, row.key.name(), *row.schema);
            objects.push_back({row.key.name(), own.take_tables().front().lines,
                               [&row](TableCollector& gatherer, const std::string& heading) {
                                   gatherer.add(heading, row.key.name(), *row.schema);
                               }});
        } else if (row.use != record::KeyUse::filter_only) {
            add_line(at, row.key.name(), row.sentence, "");
        }
    }

    void add_line(std::size_t at, std::string_view key, std::string_view sentence,
                  std::string_view more) {
        tables_[at].lines.push_back(fmt::format("| `{}` | {}{} |", key, sentence, more));
    }

    std::vector<PageTable> tables_;
};

/// Returns the rows of the first table after the line that begins with this heading.
std::vector<std::string> rows_below(std::string_view page, const std::string& heading) {
    std::vector<std::string> rows;
    std::size_t at = page.find('\n' + heading);
    at = at == std::string_view::npos ? page.size() : page.find('\n', at + 1);
    while (at < page.size()) {
        const std::size_t end = std::min(page.find('\n', at + 1), page.size());
        const std::string_view line = page.substr(at + 1, end - at - 1);
        if (line.starts_with("| `")) {
            rows.emplace_back(line);
        } else if (!rows.empty() || line.starts_with('#')) {
            break;
        }
        at = end;
    }
    return rows;
}

} // namespace

std::vector<PageTable> page_tables() {
    TableCollector tables;
    tables.add("## Every record", {}, record::kHeadSchema);
    const auto add = [&](const auto& record, std::size_t type) {
        const std::string_view name = record::kRecordTypes[type];
        tables.add(fmt::format("## `{}`", name), name, record::schema_of(record));
    };
    add(record::SessionRecord{}, 0);
    add(record::MessageRecord{}, 1);
    add(record::MapRecord{}, 2);
    add(record::SnapshotRecord{}, 3);
    tables.add("### An element of `items`", "items", record::kItemSchema);
    tables.add("### `at`", "at", record::kPlaceSchema);
    add(record::FindingRecord{}, 4);
    add(record::SummaryRecord{}, 5);
    add(record::ImpairmentRecord{}, 6);
    add(record::LossRecord{}, 7);
    add(record::SegmentRecord{}, 9);
    return tables.take_tables();
}

std::vector<std::string> page_complaints(std::string_view page) {
    std::vector<std::string> complaints;
    for (const PageTable& table : page_tables()) {
        const std::vector<std::string> rows = rows_below(page, table.heading);
        for (const std::string& line : table.lines) {
            if (std::ranges::find(rows, line) == rows.end()) {
                complaints.push_back(fmt::format("missing below \"{}\": {}", table.heading, line));
            }
        }
        for (const std::string& row : rows) {
            if (std::ranges::find(table.lines, row) == table.lines.end()) {
                complaints.push_back(fmt::format("too much below \"{}\": {}", table.heading, row));
            }
        }
    }
    return complaints;
}

} // namespace tw::test
