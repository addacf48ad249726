#include "proxy/sink/record_limits.h"

#include "snapshot/objects.h"

#include <algorithm>
#include <tuple>

namespace tw::sink {

namespace {

constexpr record::Timestamp kWindow = record::kNanosecondsPerSecond;

constexpr std::size_t kSizedTypes = std::tuple_size_v<snapshot::AgreedSizes>;

constexpr std::uint64_t first_key_of(std::uint32_t session) {
    return std::uint64_t{session} << 32U;
}

/// Returns the key of a finding's kind. For snapshot.size_differs, the key includes the item type:
/// these findings come for several types at once, and each type must be reported.
std::uint64_t key_of(const record::FindingRecord& finding) {
    const bool has_type = finding.id == record::FindingId::snapshot_size_differs && finding.item &&
                          finding.item->type_id < kSizedTypes;
    return first_key_of(finding.head.session) | static_cast<std::uint64_t>(finding.id) << 16U |
           (has_type ? finding.item->type_id : 0U);
}

constexpr record::FindingId finding_id_of(std::uint64_t key) {
    return static_cast<record::FindingId>(key >> 16U & UINT16_MAX);
}

constexpr std::uint64_t kNanosecondsASecond{record::kNanosecondsPerSecond};
constexpr std::uint64_t kReportInterval = 60 * kNanosecondsASecond;

/// Returns the time between two records; 0 if time went back. The times may come from captures and
/// have any value.
std::uint64_t elapsed_between(record::Timestamp from, record::Timestamp to) {
    return to > from ? static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from) : 0;
}

} // namespace

void FindingRateLimiter::on_record(const record::Record& record) {
    if (const auto* const* const finding = std::get_if<const record::FindingRecord*>(&record)) {
        pass_or_omit_finding(**finding);
        return;
    }
    const auto* const* const session = std::get_if<const record::SessionRecord*>(&record);
    if (session != nullptr && (*session)->event == record::SessionEvent::close) {
        end_session((*session)->head);
    }
    target_->on_record(record);
}

void FindingRateLimiter::pass_or_omit_finding(const record::FindingRecord& finding) {
    const std::uint64_t key = key_of(finding);
    if (kinds_.size() >= kMaxKinds && !kinds_.contains(key)) {
        report_all_omissions();
    }
    OmittedFindings& kind =
        kinds_.try_emplace(key, OmittedFindings{.passed_at = finding.head.time - kWindow})
            .first->second;
    if (finding.head.time - kind.passed_at < kWindow && finding.head.time >= kind.passed_at) {
        ++kind.num_omitted;
        kind.head = finding.head;
        return;
    }
    kind.passed_at = finding.head.time;
    if (kind.num_omitted == 0) {
        target_->on_record(&finding);
        return;
    }
    record::FindingRecord counted = finding;
    counted.left_out = std::exchange(kind.num_omitted, 0);
    target_->on_record(&counted);
}

void FindingRateLimiter::report_omitted_findings(record::FindingId id,
                                                 const record::RecordHeader& head,
                                                 std::uint64_t omitted) {
    if (omitted != 0) {
        const record::FindingRecord rest{.head = head, .id = id, .left_out = omitted};
        target_->on_record(&rest);
    }
}

void FindingRateLimiter::end_session(const record::RecordHeader& head) {
    const auto begin = kinds_.lower_bound(first_key_of(head.session));
    const auto end = kinds_.upper_bound(first_key_of(head.session) | UINT32_MAX);
    for (auto each = begin; each != end;) {
        const record::FindingId id = finding_id_of(each->first);
        std::uint64_t omitted = 0; // omitted findings with this id, of all item types
        for (; each != end && finding_id_of(each->first) == id; ++each) {
            omitted += each->second.num_omitted;
        }
        report_omitted_findings(id, head, omitted);
    }
    kinds_.erase(begin, end);
}

void FindingRateLimiter::report_all_omissions() {
    for (const auto& [key, kind] : kinds_) {
        report_omitted_findings(finding_id_of(key), kind.head, kind.num_omitted);
    }
    kinds_.clear();
}

void MessageRateLimiter::on_record(const record::Record& record) {
    const auto* const* const message = std::get_if<const record::MessageRecord*>(&record);
    if (message != nullptr && bytes_per_second_ != 0) {
        pass_or_omit_message(**message);
        return;
    }
    const auto* const* const session = std::get_if<const record::SessionRecord*>(&record);
    if (session != nullptr && (*session)->event == record::SessionEvent::close) {
        if (const auto found = sessions_.find((*session)->head.session); found != sessions_.end()) {
            found->second.head.time = (*session)->head.time;
            report_omitted_messages(found->second);
            sessions_.erase(found);
        }
    }
    target_->on_record(record);
}

void MessageRateLimiter::pass_or_omit_message(const record::MessageRecord& message) {
    const record::Timestamp now = message.head.time;
    if (sessions_.size() >= kMaxSessions && !sessions_.contains(message.head.session)) {
        report_all_omissions();
    }
    const auto [found, is_new] = sessions_.try_emplace(message.head.session);
    Session& session = found->second;
    if (is_new) {
        session.bytes_left = static_cast<std::int64_t>(kBurstSeconds * bytes_per_second_);
        session.time = now;
    }
    refill(session, now);
    if (session.bytes_left > 0) {
        const std::uint64_t before = target_->bytes_written();
        target_->on_record(&message);
        session.bytes_left -= static_cast<std::int64_t>(target_->bytes_written() - before);
        return;
    }
    ++num_omitted_;
    ++session.num_omitted;
    session.head = message.head;
    if (session.num_reported == 0 || elapsed_between(session.reported_at, now) >= kReportInterval ||
        now < session.reported_at) {
        session.reported_at = now;
        report_omitted_messages(session);
    }
}

/// Adds the bytes that the session may write for the time since the last call. Adds nothing if the
/// clock was set back, and at most the bytes of kBurstSeconds if the clock was set forward.
void MessageRateLimiter::refill(Session& session, record::Timestamp now) const {
    const auto full = static_cast<std::int64_t>(kBurstSeconds * bytes_per_second_);
    const std::uint64_t passed = std::min<std::uint64_t>(elapsed_between(session.time, now),
                                                         kBurstSeconds * kNanosecondsASecond);
    session.time = now;
    const double more = static_cast<double>(passed) / static_cast<double>(kNanosecondsASecond) *
                        static_cast<double>(bytes_per_second_);
    session.bytes_left = std::min(full, session.bytes_left + static_cast<std::int64_t>(more));
}

void MessageRateLimiter::report_omitted_messages(Session& session) {
    if (session.num_omitted == session.num_reported) {
        return;
    }
    session.num_reported = session.num_omitted;
    const record::FindingRecord finding{.head = session.head,
                                        .id = record::FindingId::session_messages_left_out,
                                        .lost = session.num_omitted,
                                        .limit = static_cast<std::int64_t>(bytes_per_second_)};
    target_->on_record(&finding);
}

void MessageRateLimiter::report_all_omissions() {
    for (auto& [unused, session] : sessions_) {
        report_omitted_messages(session);
    }
    sessions_.clear();
}

} // namespace tw::sink
