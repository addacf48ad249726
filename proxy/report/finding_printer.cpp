#include "proxy/report/finding_printer.h"

#include "proxy/record/describe_finding.h"
#include "proxy/sink/complaint.h"

namespace tw::report {

namespace {

/// Why a demo ends before its end: who reads it says so, and where in which file.
bool is_end_of_demo(record::FindingId id) {
    return id == record::FindingId::demo_damaged || id == record::FindingId::demo_cut_short;
}

} // namespace

void FindingPrinter::on_record(const record::Record& record) {
    const auto* const* finding = std::get_if<const record::FindingRecord*>(&record);
    if (finding == nullptr || is_end_of_demo((*finding)->id)) {
        return;
    }
    if ((*finding)->id == record::FindingId::snapshot_explained) {
        if (seen_ <= kMaxShown) { // the finding that it explains was shown
            sink::say(out_, record::describe(**finding) + '\n');
        }
        return;
    }
    if (record::finding_info((*finding)->id).severity == record::Severity::info) {
        return;
    }
    if (++seen_ <= kMaxShown) {
        sink::say(out_, record::describe(**finding) + '\n');
    } else if (seen_ == kMaxShown + 1) {
        sink::say(out_, "further findings are only counted and recorded\n");
    }
}

} // namespace tw::report
