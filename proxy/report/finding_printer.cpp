#include "proxy/report/finding_printer.h"

#include "proxy/record/describe_finding.h"

#include <fmt/format.h>

namespace tw::report {

void FindingPrinter::on_record(const record::Record& record) {
    const auto* const* finding = std::get_if<const record::FindingRecord*>(&record);
    if (finding == nullptr ||
        record::finding_info((*finding)->id).severity == record::Severity::info) {
        return;
    }
    if (++seen_ <= kMaxShown) {
        fmt::print(out_, "{}\n", record::describe(**finding));
    } else if (seen_ == kMaxShown + 1) {
        fmt::print(out_, "further findings are only counted and recorded\n");
    }
}

} // namespace tw::report
