#include "proxy/game/feed.h"

namespace tw::game {

namespace {

Input begin(Input::Kind kind, const record::RecordHead& head) {
    return {.kind = kind, .time = head.time, .session = head.session};
}

} // namespace

void Feed::on_record(const record::Record& record) {
    if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
        const record::SnapshotRecord& it = **snapshot;
        // Items of 0.7 are others; a server that speaks both shows the same game in each.
        const bool six = it.types == nullptr || it.types->dialect() == snapshot::Dialect::six;
        if (it.rebuilt && six) {
            Input input = begin(Input::Kind::snapshot, it.head);
            input.tick = it.tick;
            input.items = it.items;
            input.world = it.world;
            input.client_version = it.client_version.value_or(0);
            to_->on_input(input);
        }
    } else if (const auto* const* map = std::get_if<const record::MapRecord*>(&record)) {
        Input input = begin(Input::Kind::map, (*map)->head);
        input.map = *map;
        to_->on_input(input);
    } else if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
        const bool ends = (*session)->event == record::SessionEvent::close;
        Input input = begin(ends ? Input::Kind::close : Input::Kind::open, (*session)->head);
        input.server = (*session)->server;
        to_->on_input(input);
    }
}

} // namespace tw::game
