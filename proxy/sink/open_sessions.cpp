#include "proxy/sink/open_sessions.h"

#include <utility>

namespace tw::sink {

OpenSessions::Session* OpenSessions::find(std::uint32_t number) {
    const auto found = sessions_.find(number);
    if (found != sessions_.end()) {
        return &found->second;
    }
    return sessions_.size() < kMaxSessions ? &sessions_[number] : nullptr;
}

void OpenSessions::append_to(JsonBuffer& out) const {
    for (const auto& [number, session] : sessions_) {
        for (const std::string* const line : {&session.open, &session.established, &session.map}) {
            if (!line->empty()) {
                out.append(*line);
                out.append(std::string_view{R"(,"again":true})"});
                out.append('\n');
            }
        }
    }
}

bool OpenSessions::first_snapshot(const record::Record& record, std::uint32_t segment) {
    if (std::holds_alternative<const record::WorldRecord*>(record)) {
        return std::exchange(worlds_whole_in_, segment) != segment;
    }
    const auto* const* const snapshot = std::get_if<const record::SnapshotRecord*>(&record);
    if (snapshot == nullptr || !(*snapshot)->rebuilt) {
        return false;
    }
    Session* const session = find((*snapshot)->head.session);
    return session != nullptr && std::exchange(session->whole_in, segment) != segment;
}

void OpenSessions::remember(const record::Record& record, std::string_view line) {
    line.remove_suffix(2); // the bracket and the line's end
    if (const auto* const* const event = std::get_if<const record::SessionRecord*>(&record)) {
        on_event(**event, line);
    } else if (const auto* const* const map = std::get_if<const record::MapRecord*>(&record)) {
        if (Session* const session = find((*map)->head.session)) {
            session->map = line;
        }
    }
}

void OpenSessions::on_event(const record::SessionRecord& event, std::string_view line) {
    const bool ends =
        event.event == record::SessionEvent::close && event.reason != record::kReconnected;
    Session* const session = ends ? nullptr : find(event.head.session);
    if (session == nullptr) {
        sessions_.erase(event.head.session);
    } else if (event.event == record::SessionEvent::open) {
        session->open = line;
    } else if (event.event == record::SessionEvent::established) {
        session->established = line;
    } else { // it goes on under its number
        session->established.clear();
        session->map.clear();
    }
}

} // namespace tw::sink
