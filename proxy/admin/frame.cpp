#include "proxy/admin/frame.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace tw::admin {

namespace {

using Text = fmt::memory_buffer;

constexpr double kNanosecondsPerMs = 1e6;

void put(Text& out, std::string_view text) {
    out.append(text.data(), text.data() + text.size());
}

void put(Text& out, std::int64_t value) {
    const fmt::format_int text{value};
    out.append(text.data(), text.data() + text.size());
}

void put_item(Text& out, const snapshot::ItemView& item, const ObjectPlaces& places) {
    put(out, out.size() != 0 && out[out.size() - 1] == '[' ? "[" : ",[");
    put(out, std::int64_t{places.place(item.key.type)});
    put(out, ",");
    put(out, std::int64_t{item.key.id});
    for (const std::int32_t value : item.data) {
        put(out, ",");
        put(out, std::int64_t{value});
    }
    put(out, "]");
}

/// As a member of an object that has some before it.
void put_bars(Text& out, std::span<const Bar> bars) {
    put(out, ",\"bars\":[");
    for (const Bar& bar : bars) {
        fmt::format_to(std::back_inserter(out), "{}[{},{:.1f},{},{},{},{},{},{}]",
                       &bar == bars.data() ? "" : ",", bar.session,
                       static_cast<double>(bar.time) / kNanosecondsPerMs, bar.tick, bar.delta_tick,
                       bar.bytes, bar.parts, bar.size, static_cast<int>(bar.fate));
    }
    put(out, "]");
}

bool same(const snapshot::ItemView& a, const snapshot::ItemView& b) {
    return std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end());
}

/// Both are sorted by key. Puts what is new or different in `now`; returns what is only in `before`.
std::vector<snapshot::ItemKey> put_changes(Text& out, const snapshot::SnapshotView& now,
                                           const snapshot::SnapshotView& before,
                                           const ObjectPlaces& places) {
    std::vector<snapshot::ItemKey> gone;
    std::size_t old = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const snapshot::ItemView item = now[i];
        for (; old < before.size() && before[old].key < item.key; ++old) {
            gone.push_back(before[old].key);
        }
        const bool was = old < before.size() && before[old].key == item.key;
        if (item.key.type != snapshot::kDescriptorType && !(was && same(item, before[old]))) {
            put_item(out, item, places);
        }
        old += was ? 1 : 0;
    }
    for (; old < before.size(); ++old) {
        gone.push_back(before[old].key);
    }
    return gone;
}

} // namespace

bool ObjectPlaces::learn(const snapshot::SnapshotView& items) {
    bool other = false;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const snapshot::ItemView item = items[i];
        if (item.key.type != snapshot::kDescriptorType) {
            break; // they come first
        }
        const auto uuid = snapshot::descriptor_uuid(item.data);
        const snapshot::ObjectSpec* object = uuid ? objects_->find(*uuid) : nullptr;
        const std::int32_t place = object == nullptr
                                       ? -1 - item.key.id
                                       : static_cast<std::int32_t>(objects_->index_of(*object));
        const auto known = std::find_if(uuids_.begin(), uuids_.end(), [&](const Known& entry) {
            return entry.type == item.key.id;
        });
        if (known != uuids_.end()) {
            other = std::exchange(known->place, place) != place || other;
        } else if (uuids_.size() < kMaxTypes) {
            uuids_.push_back({.type = item.key.id, .place = place});
        }
    }
    return other;
}

std::int32_t ObjectPlaces::place(std::uint16_t type) const {
    if (type >= snapshot::kFirstUuidType) {
        const auto found = std::find_if(uuids_.begin(), uuids_.end(),
                                        [type](const Known& entry) { return entry.type == type; });
        return found == uuids_.end() ? -1 - type : found->place;
    }
    // What a page is told of 0.7 is in the terms of 0.6.
    const snapshot::ObjectSpec* object = objects_->find(type, snapshot::Dialect::six);
    return object == nullptr ? -1 - type : static_cast<std::int32_t>(objects_->index_of(*object));
}

std::string frame_json(const FrameHead& head, const snapshot::SnapshotView& now,
                       const std::optional<snapshot::SnapshotView>& before,
                       std::span<const Bar> bars, const ObjectPlaces& places) {
    Text out;
    fmt::format_to(std::back_inserter(out),
                   R"({{"k":"frame","session":{},"n":{},"full":{},"t":{:.3f},"tick":{},"items":[)",
                   head.session, head.number, !before.has_value(),
                   static_cast<double>(head.time) / kNanosecondsPerMs, head.tick);
    const auto gone = put_changes(out, now, before.value_or(snapshot::SnapshotView{}), places);
    put(out, "],\"gone\":[");
    for (const snapshot::ItemKey& key : gone) {
        put_item(out, {key, {}}, places);
    }
    put(out, "]");
    put_bars(out, bars);
    put(out, "}");
    return {out.data(), out.size()};
}

std::string bars_json(std::uint32_t session, std::span<const Bar> bars) {
    Text out;
    fmt::format_to(std::back_inserter(out), R"({{"k":"bars","session":{})", session);
    put_bars(out, bars);
    put(out, "}");
    return {out.data(), out.size()};
}

} // namespace tw::admin
