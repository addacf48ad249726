#include "proxy/record/describe_finding.h"

#include "proxy/record/terminal_text.h"

#include <fmt/format.h>

namespace tw::record {

std::string describe(const FindingRecord& record) {
    const FindingInfo& info = finding_info(record.id);
    std::string line = fmt::format("{} {}: session {}", severity_name(info.severity), info.name,
                                   record.head.session);
    if (record.tick) {
        line += fmt::format(", tick {}", *record.tick);
    }
    if (record.item) {
        line += fmt::format(", {} {}",
                            record.item->type.empty() ? fmt::format("type {}", record.item->type_id)
                                                      : std::string{record.item->type},
                            record.item->id);
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

} // namespace tw::record
