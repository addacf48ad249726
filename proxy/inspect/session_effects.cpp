// What the messages of a session mean for it: maps, snapshots, acknowledgements.

#include "map/game_layer.h"
#include "proxy/inspect/session.h"
#include "proxy/wire/text.h"
#include "snapshot/cursor.h"

#include <array>
#include <cstring>
#include <utility>

namespace tw::inspect {

using wire::MessageId;

namespace {

/// String cleaning that receivers do on map names (protocol sheet, section 3.2).
constexpr std::uint8_t kNameCleaning = 2 | 4;

std::string clean_name(std::string_view text) {
    return wire::sanitize_string(std::as_bytes(std::span{text}), kNameCleaning);
}

} // namespace

void Session::act_on(const wire::Chunk& chunk, const wire::MessageHead& head,
                     Workspace& workspace) {
    const bool s2c = direction() == wire::Direction::s2c;
    const MessageId id = head.spec->id;
    if (s2c && wire::is_snapshot(id) && !chunk.vital) {
        snapshots_.on_message(id, head.body, reporter_, workspace.snapshots);
    } else if (s2c && id == MessageId::map_change) {
        on_map_change(head.body);
    } else if (s2c && id == MessageId::map_details) {
        on_map_details(head.body);
    } else if (s2c && id == MessageId::map_data) {
        on_map_data(head.body);
    } else if (!s2c && id == MessageId::enter_game) {
        restart_snapshots();
    } else if (!s2c && id == MessageId::input) {
        on_input(head.body);
    } else if (s2c && id == MessageId::input_timing) {
        snapshot::Cursor in{head.body};
        static_cast<void>(in.var_int());
        if (const std::int32_t margin = in.var_int(); !in.failed()) {
            reporter_.stats.input_margin_ms.add(margin);
        }
    }
}

void Session::restart_snapshots() {
    snapshots_.restart(reporter_);
    inputs_ = {};
    if (attribution_) {
        attribution_->restart();
    }
}

void Session::on_input(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    const snapshot::Tick acknowledged = in.var_int();
    const snapshot::Tick intended = in.var_int();
    snapshots_.on_ack(acknowledged, reporter_);
    if (in.failed()) {
        return;
    }
    record::DirectionStats& stats = reporter_.direction_stats();
    if (const auto deviation = inputs_.arrived(intended, reporter_.head().time)) {
        stats.jitter_us.add(*deviation);
    }
}

void Session::on_map_details(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    MapAnnouncement details{.name = clean_name(in.string())};
    const auto sha256 = in.raw(std::tuple_size_v<decltype(details.sha256)::value_type>);
    details.crc = static_cast<std::uint32_t>(in.var_int());
    details.size = in.var_int();
    if (in.failed()) {
        return;
    }
    details.sha256.emplace();
    std::memcpy(details.sha256->data(), sha256.data(), sha256.size());
    details_ = std::move(details);
}

void Session::on_map_change(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    MapAnnouncement announced{.name = clean_name(in.string())};
    announced.crc = static_cast<std::uint32_t>(in.var_int());
    announced.size = in.var_int();
    if (in.failed()) {
        return;
    }
    // The details belong to the change that follows them with the same name, crc and size.
    if (details_ && details_->name == announced.name && details_->crc == announced.crc &&
        details_->size == announced.size) {
        announced.sha256 = details_->sha256;
    }
    details_.reset();
    ++reporter_.stats.map_changes;
    restart_snapshots();

    use_map(announced, maps_->find(announced), "folder");
    download_.begin(announced);
}

void Session::on_map_data(std::span<const std::byte> body) {
    if (download_.on_data(body)) {
        const MapAnnouncement announced = download_.announcement();
        use_map(announced, maps_->keep(announced, download_.take_bytes()), "wire");
    }
}

void Session::use_map(const MapAnnouncement& announced, const FoundMap& found,
                      std::string_view source) {
    record::MapRecord record{.head = reporter_.head(),
                             .name = announced.name,
                             .crc = announced.crc,
                             .size = announced.size,
                             .sha256 = announced.sha256 ? announced.sha256 : found.sha256,
                             .source = "none"};
    if (found.status == MapStatus::found) {
        record.source = source;
        record.width = found.physics->width();
        record.height = found.physics->height();
        snapshots_.set_world(std::make_shared<const record::World>(found.physics));
    } else {
        snapshots_.set_world(nullptr);
    }
    reporter_.emit(record);
    static constexpr std::array kFindings{
        record::FindingId::count, record::FindingId::map_not_found,
        record::FindingId::map_crc_mismatch, record::FindingId::map_unreadable,
        record::FindingId::map_name_invalid};
    if (const record::FindingId id = kFindings[static_cast<std::size_t>(found.status)];
        id != record::FindingId::count) {
        reporter_.finding({.id = id, .name = announced.name, .detail = found.detail});
    }
}

} // namespace tw::inspect
