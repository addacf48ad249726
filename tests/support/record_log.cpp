#include "tests/support/record_log.h"

#include <algorithm>
#include <array>

namespace tw::test {

namespace {

std::string line_of(const record::SessionRecord& record) {
    static constexpr std::array<std::string_view, 3> kEvents{"open", "established", "close"};
    std::string line = "session " + std::string{kEvents[static_cast<std::size_t>(record.event)]};
    if (record.event == record::SessionEvent::established) {
        line += ' ' + std::string{record.protocol};
    } else if (record.event == record::SessionEvent::close) {
        line += ' ' + std::string{record.reason};
    }
    if (record.resumed) {
        line += " resumed";
    }
    return line;
}

std::string line_of(const record::MessageRecord& record) {
    std::string line = "message ";
    line += record.head.direction == wire::Direction::c2s ? "c2s " : "s2c ";
    line += record.name.empty() ? "?" : std::string{record.name};
    if (record.vital) {
        line += " #" + std::to_string(record.sequence);
    }
    return line;
}

std::string line_of(const record::MapRecord& record) {
    return "map " + std::string{record.name} + ' ' + std::string{record.source};
}

std::string line_of(const record::SnapshotRecord& record) {
    const std::string line =
        "snapshot " + std::to_string(record.tick) + "<-" + std::to_string(record.delta_tick);
    return record.rebuilt ? line + " ok " + std::to_string(record.items.size()) : line + " bad";
}

std::string line_of(const record::WorldRecord& record) {
    return "world " + std::to_string(record.tick) + " views " + std::to_string(record.views) + ' ' +
           std::to_string(record.merged.items.size());
}

std::string line_of(const record::FindingRecord& record) {
    std::string line = "finding " + std::string{record::finding_info(record.id).name};
    if (record.tick) {
        line += " tick " + std::to_string(*record.tick);
    }
    if (record.item) {
        line += record.item->type.empty() ? ' ' + std::to_string(record.item->type_id) + '/'
                                          : ' ' + std::string{record.item->type} + ' ';
        line += std::to_string(record.item->id);
    }
    if (!record.name.empty()) {
        line += ' ' + std::string{record.name};
    }
    if (record.id == record::FindingId::snapshot_part_missing && record.part) {
        line += " part " + std::to_string(*record.part);
    }
    return line;
}

std::string line_of(const record::SummaryRecord& /*record*/) {
    return "summary";
}

std::string line_of(const record::LossRecord& record) {
    return "records_lost " + std::to_string(record.lost) + " " + std::string{record.cause};
}

std::string line_of(const record::SegmentRecord& record) {
    return "segment " + std::to_string(record.number);
}

std::string line_of(const record::ImpairmentRecord& record) {
    return "impairment " + std::string{record.settings};
}

void append_shown_bytes(std::span<const std::byte> bytes, wire::Secrecy secrecy,
                        std::string& shown) {
    if (secrecy == wire::Secrecy::open) {
        std::ranges::transform(bytes, std::back_inserter(shown),
                               [](std::byte byte) { return static_cast<char>(byte); });
    }
}

} // namespace

void RecordLog::on_record(const record::Record& record) {
    std::visit([this](const auto* concrete) { lines_.push_back(line_of(*concrete)); }, record);
    if (const auto* const* summary = std::get_if<const record::SummaryRecord*>(&record)) {
        summaries_.push_back(*(*summary)->stats);
    } else if (const auto* const* message = std::get_if<const record::MessageRecord*>(&record)) {
        append_shown_bytes((*message)->raw, (*message)->secrecy, shown_);
        for (const wire::FieldValue& value : (*message)->values) {
            append_shown_bytes(value.bytes, value.secrecy, shown_);
        }
    } else if (const auto* const* finding = std::get_if<const record::FindingRecord*>(&record)) {
        append_shown_bytes((*finding)->bytes, (*finding)->secrecy, shown_);
    }
}

std::vector<std::string> RecordLog::lines(std::initializer_list<std::string_view> types) const {
    std::vector<std::string> found;
    std::copy_if(lines_.begin(), lines_.end(), std::back_inserter(found), [&](const auto& line) {
        return std::ranges::find(types, line.substr(0, line.find(' '))) != types.end();
    });
    return found;
}

std::size_t RecordLog::count_of(std::string_view finding) const {
    return static_cast<std::size_t>(std::ranges::count_if(lines_, [&](const std::string& line) {
        const std::string start = "finding " + std::string{finding};
        return line == start || line.starts_with(start + ' ');
    }));
}

} // namespace tw::test
