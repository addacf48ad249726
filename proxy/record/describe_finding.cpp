#include "proxy/record/describe_finding.h"

#include "proxy/record/terminal_text.h"

#include <fmt/format.h>

namespace tw::record {

namespace {

std::string text_of(const FindingItem& item, std::string_view field) {
    std::string text = fmt::format("{} {}",
                                   item.type.empty() ? fmt::format("type {}", item.type_id)
                                                     : terminal_text(item.type),
                                   item.id);
    return field.empty() ? text : text + ' ' + terminal_text(field);
}

} // namespace

std::string describe(const FindingRecord& record) {
    const FindingInfo& info = finding_info(record.id);
    std::string line = fmt::format("{} {}: session {}", severity_name(info.severity), info.name,
                                   record.head.session);
    if (record.tick) {
        line += fmt::format(", tick {}", *record.tick);
    }
    if (record.item) {
        line += ", " + text_of(*record.item, record.field);
        if (record.id == FindingId::snapshot_explained && record.value && record.expected) {
            line += fmt::format(" {} instead of {}", *record.value, *record.expected);
        }
    }
    if (record.candidates) {
        line += fmt::format(", {} {}", record.candidates->count,
                            record.candidates->count == 1 ? "candidate" : "candidates");
        if (!record.item && !record.candidates->likeliest.empty()) {
            const Candidate& first = record.candidates->likeliest.front();
            line += fmt::format(" (the likeliest: {})", text_of(first.item, first.field));
        }
    }
    if (record.crc_wanted && record.crc_got) {
        line += fmt::format(", checksum {} instead of {}", *record.crc_got, *record.crc_wanted);
    }
    if (!record.name.empty()) {
        line += fmt::format(", {}", terminal_text(record.name));
    }
    line += fmt::format(". {}", info.sentence);
    if (!record.detail.empty()) {
        line += fmt::format(" ({})", terminal_text(record.detail));
    }
    return line;
}

std::string describe_explained(const FindingRecord& explained) {
    const std::string line = describe(explained);
    const FindingInfo& info = finding_info(FindingId::snapshot_crc_mismatch);
    return fmt::format("{} {}{}", severity_name(info.severity), info.name,
                       line.substr(line.find(": ")));
}

} // namespace tw::record
