#include "proxy/admin/board.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace tw::admin {

namespace {

/// Those first that are connected, in order.
void order_by_use(std::vector<SessionView>& sessions) {
    std::ranges::sort(sessions, {}, [](const SessionView& session) {
        return std::pair{!session.connected, session.number};
    });
}

} // namespace

void explain_line(std::deque<FindingLine>& lines, std::string told) {
    constexpr std::string_view kTick = ", tick ";
    const std::size_t tick = told.find(kTick);
    if (tick == std::string::npos) {
        return;
    }
    const std::size_t end = told.find_first_of(",.", tick + kTick.size());
    const std::string begin = told.substr(0, end);
    const auto line = std::find_if(lines.rbegin(), lines.rend(), [&](const FindingLine& each) {
        return each.text.starts_with(begin) &&
               (each.text.size() == begin.size() || each.text[begin.size()] == ',' ||
                each.text[begin.size()] == '.');
    });
    if (line != lines.rend()) {
        line->text = std::move(told);
    }
}

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
        servers[name].sessions += seen.sessions;
        servers[name].players += seen.players;
        servers[name].findings += seen.findings;
    }
    for (const auto& [type, count] : other.items) {
        items[type] += count;
    }
}

void View::cut_sessions() {
    order_by_use(sessions);
    std::map<std::string, std::size_t> found; // by the server's name
    std::erase_if(sessions, [&](const SessionView& session) {
        return ++found[session.server_name] > kMaxSessions;
    });
    std::ranges::sort(sessions, {}, &SessionView::number);
}

void View::cut_to_table() {
    order_by_use(sessions);
    sessions.resize(std::min(sessions.size(), kMaxSessions));
    std::ranges::sort(sessions, {}, &SessionView::number);
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
