#include "proxy/game/feed.h"

#include "proxy/game/said.h"
#include "proxy/record/snapshot_names.h"

namespace tw::game {

namespace {

Input begin(Input::Kind kind, const record::RecordHead& head) {
    return {
        .kind = kind, .time = head.time, .session = head.session, .server_name = head.server_name};
}

bool may_be_for_all(const record::MessageRecord& message) {
    return message.head.direction == wire::Direction::s2c && !message.system && message.vital &&
           message.layer == record::MessageLayer::chunk && find_audience(message.name) != nullptr;
}

} // namespace

void Feed::on_record(const record::Record& record) {
    if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
        const record::SnapshotRecord& it = **snapshot;
        if (it.rebuilt) {
            Input input = begin(Input::Kind::snapshot, it.head);
            input.tick = it.tick;
            input.items = it.items;
            input.world = it.world;
            input.dialect = record::dialect_of(it);
            input.roster = it.roster;
            input.client_version = it.client_version.value_or(0);
            to_->on_input(input);
        }
    } else if (const auto* const* map = std::get_if<const record::MapRecord*>(&record)) {
        Input input = begin(Input::Kind::map, (*map)->head);
        input.map = *map;
        to_->on_input(input);
    } else if (const auto* const* said = std::get_if<const record::MessageRecord*>(&record)) {
        if (messages_ && may_be_for_all(**said)) {
            Input input = begin(Input::Kind::message, (*said)->head);
            input.payload = (*said)->payload;
            to_->on_input(input);
        }
    } else if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
        const bool ends = (*session)->event == record::SessionEvent::close;
        Input input = begin(ends ? Input::Kind::close : Input::Kind::open, (*session)->head);
        input.server = (*session)->server;
        input.resumed = (*session)->resumed;
        to_->on_input(input);
    }
}

} // namespace tw::game
