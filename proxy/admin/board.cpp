#include "proxy/admin/board.h"

#include <algorithm>
#include <utility>

namespace tw::admin {

void View::merge(const View& other) {
    totals.merge(other.totals);
    sessions_open += other.sessions_open;
    sessions.insert(sessions.end(), other.sessions.begin(), other.sessions.end());
    cut_sessions();
    maps.insert(other.maps.begin(), other.maps.end());
    findings.insert(findings.end(), other.findings.begin(), other.findings.end());
    std::stable_sort(
        findings.begin(), findings.end(),
        [](const FindingLine& a, const FindingLine& b) { return a.time_ms < b.time_ms; });
    while (findings.size() > kMaxFindings) {
        findings.pop_front();
    }
    accounts.insert(accounts.end(), other.accounts.begin(), other.accounts.end());
    for (const auto& [name, seen] : other.servers) {
        servers[name].players += seen.players;
        servers[name].findings += seen.findings;
    }
    for (const auto& [type, count] : other.items) {
        items[type] += count;
    }
}

void View::cut_sessions() {
    std::ranges::sort(sessions, {}, &SessionView::number);
    if (sessions.size() > kMaxSessions) {
        std::stable_partition(sessions.begin(), sessions.end(),
                              [](const SessionView& session) { return session.connected; });
        sessions.resize(kMaxSessions);
        std::ranges::sort(sessions, {}, &SessionView::number);
    }
}

bool Board::try_publish(std::size_t worker, View& view) {
    const std::unique_lock lock{mutex_, std::try_to_lock};
    if (!lock.owns_lock()) {
        return false;
    }
    std::swap(views_.at(worker), view);
    return true;
}

View Board::read() const {
    const std::lock_guard lock{mutex_};
    View all;
    for (const View& view : views_) {
        all.merge(view);
    }
    return all;
}

} // namespace tw::admin
