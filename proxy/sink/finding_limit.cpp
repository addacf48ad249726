#include "proxy/sink/finding_limit.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tw::sink {

namespace {

constexpr record::Timestamp kWindow = 1'000'000'000;

constexpr std::uint64_t key_of(std::uint32_t session, std::size_t id) {
    return std::uint64_t{session} << 32U | id;
}

} // namespace

void FindingLimit::on_record(const record::Record& record) {
    if (const auto* const* const finding = std::get_if<const record::FindingRecord*>(&record)) {
        limit(**finding);
        return;
    }
    const auto* const* const session = std::get_if<const record::SessionRecord*>(&record);
    if (session != nullptr && (*session)->event == record::SessionEvent::close) {
        end_session((*session)->head);
    }
    target_->on_record(record);
}

void FindingLimit::limit(const record::FindingRecord& finding) {
    const std::uint64_t key = key_of(finding.head.session, static_cast<std::size_t>(finding.id));
    auto found = kinds_.find(key);
    if (found == kinds_.end() && kinds_.size() >= kMaxKinds) {
        make_room(finding.head.time);
    }
    if (found == kinds_.end() && kinds_.size() < kMaxKinds) {
        found = kinds_.emplace(key, Kind{.written = finding.head.time - kWindow}).first;
    }
    if (found == kinds_.end()) {
        target_->on_record(&finding);
        return;
    }
    Kind& kind = found->second;
    if (finding.head.time - kind.written < kWindow && finding.head.time >= kind.written) {
        ++kind.left_out;
        kind.head = finding.head;
        return;
    }
    kind.written = finding.head.time;
    if (kind.left_out == 0) {
        target_->on_record(&finding);
        return;
    }
    record::FindingRecord counted = finding;
    counted.left_out = std::exchange(kind.left_out, 0);
    target_->on_record(&counted);
}

void FindingLimit::tell_rest(record::FindingId id, const record::RecordHead& head,
                             std::uint64_t left_out) {
    if (left_out != 0) {
        const record::FindingRecord rest{.head = head, .id = id, .left_out = left_out};
        target_->on_record(&rest);
    }
}

void FindingLimit::end_session(const record::RecordHead& head) {
    for (std::size_t id = 0; id < static_cast<std::size_t>(record::FindingId::count); ++id) {
        const auto found = kinds_.find(key_of(head.session, id));
        if (found != kinds_.end()) {
            tell_rest(static_cast<record::FindingId>(id), head, found->second.left_out);
            kinds_.erase(found);
        }
    }
}

void FindingLimit::make_room(record::Timestamp now) {
    const auto is_past = [now](record::Timestamp then) {
        return now - then >= kWindow || now < then;
    };
    if (!is_past(cleared_)) {
        return;
    }
    cleared_ = now;
    std::erase_if(kinds_, [&](const auto& each) {
        const auto& [key, kind] = each;
        const bool past = is_past(std::max(kind.written, kind.head.time));
        if (past) {
            tell_rest(static_cast<record::FindingId>(key & UINT32_MAX), kind.head, kind.left_out);
        }
        return past;
    });
}

void FindingLimit::finish() {
    const std::map<std::uint64_t, Kind> rest{kinds_.begin(), kinds_.end()}; // in one order
    kinds_.clear();
    for (const auto& [key, kind] : rest) {
        tell_rest(static_cast<record::FindingId>(key & UINT32_MAX), kind.head, kind.left_out);
    }
}

} // namespace tw::sink
