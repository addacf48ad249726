#pragma once

#include "map/game_layer.h"
#include "proxy/record/records.h"
#include "snapshot/names.h"
#include "snapshot/objects.h"
#include "tests/support/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::test {

/// A map of 4 x 4 tiles; on (1, 1) every layer has something: finish, freeze in front, a teleporter
/// (7), a speedup, a switch (3) and tune zone 5.
inline std::shared_ptr<const map::PhysicsLayers> sample_map() {
    constexpr std::array<std::size_t, map::kPhysicsLayers> kRecordBytes{4, 4, 2, 6, 4, 2};
    constexpr std::size_t kTiles = 16;
    constexpr std::size_t kTile = 5;
    const std::array<std::vector<int>, map::kPhysicsLayers> records{
        {{34, 0, 0, 0}, {9, 0, 0, 0}, {7, 26}, {20, 0, 28, 0, 90, 0}, {3, 22, 0, 4}, {5, 68}}};
    map::PhysicsLayers::Contents planes;
    planes.width = 4;
    planes.height = 4;
    for (std::size_t layer = 0; layer < records.size(); ++layer) {
        map::Block block{kTiles * kRecordBytes[layer]};
        const auto bytes = block.writable_bytes();
        std::ranges::fill(bytes, std::byte{0});
        for (std::size_t i = 0; i < records[layer].size(); ++i) {
            bytes[kTile * kRecordBytes[layer] + i] = static_cast<std::byte>(records[layer][i]);
        }
        planes.records[layer] = std::move(block);
    }
    return std::make_shared<const map::PhysicsLayers>(std::move(planes));
}

/// Packs a text into ints like servers do.
inline void pack_text(std::string_view text, std::span<std::int32_t> ints) {
    for (std::size_t i = 0; i < ints.size(); ++i) {
        std::uint32_t packed = 0;
        for (std::size_t j = 0; j < 4; ++j) {
            const std::size_t at = 4 * i + j;
            const bool last = at + 1 == 4 * ints.size();
            const auto c = at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
            packed = packed << 8U | (last ? 0U : (c + 128U) % 256U);
        }
        ints[i] = static_cast<std::int32_t>(packed);
    }
}

/// One record of each type, with all optional members.
class SampleRecords {
  public:
    static constexpr std::int64_t kTime = 1'767'225'600'123'456'000; ///< 2026-01-01T00:00:00.123456

    SampleRecords() {
        fill_items();
        snapshot.items = items_.view();
        snapshot.tile_map = &world_;
        snapshot.types = &types_;
        stats_.directions[0].bytes = 1000;
        stats_.directions[1].bytes = 5000;
        stats_.snapshots = 10;
        stats_.verified = 9;
        stats_.findings[static_cast<std::size_t>(record::FindingId::snapshot_crc_mismatch)] = 1;
        for (record::Distribution* distribution :
             {&stats_.items, &stats_.snapshot_bytes, &stats_.delta_distance,
              &stats_.snapshot_interval_us, &stats_.freeze_us, &stats_.directions[0].jitter_us,
              &stats_.directions[1].jitter_us, &stats_.ack_lag_ticks, &stats_.input_margin_ms}) {
            distribution->add(2);
            distribution->add(5);
        }
        summary.stats = &stats_;
        place_ = world_.tiles_at(*snapshot::find_object(9, snapshot::Dialect::six),
                                 items_.view()[0].data);
        finding.place = place_;
        finding.left_out = 24;
        finding.other_session = 5;
        sightings_ = {.sessions = seers_,
                      .bits = seen_,
                      .words_per_item = 1,
                      .missing_ints = untold_,
                      .id_kinds = id_kinds_,
                      .renumbered = renumbered_};
        world.merged = snapshot;
        world.merged.sightings = &sightings_;
        world.map = &map;
        map.again = true;
    }

    [[nodiscard]] std::vector<record::Record> all() const {
        return {&session, &message,    &input, &unknown,  &unknown_uuid,
                &control, &connless,   &map,   &snapshot, &finding,
                &summary, &impairment, &loss,  &world,    &segment};
    }

    record::RecordHeader head{.time = kTime, .session = 3, .direction = wire::Direction::s2c};
    record::SessionRecord session{.head = head,
                                  .event = record::SessionEvent::close,
                                  .client = "127.0.0.1:5000",
                                  .server = "127.0.0.1:8303",
                                  .protocol = "0.6",
                                  .reason = "Timeout \"no\" answer"};

  private:
    using Kind = wire::FieldValue::Kind;
    const snapshot::NameTable* flags_ =
        snapshot::find_object(9, snapshot::Dialect::six)->fields[15].names;
    std::vector<wire::FieldValue> chat_{
        {.kind = Kind::integer, .name = "team", .integer = 0, .names = &snapshot::names::chat_team},
        {.kind = Kind::integer, .name = "client_id", .integer = 5},
        {.kind = Kind::string, .name = "message", .bytes = as_bytes("Hello World")}};
    std::vector<wire::FieldValue> input_{
        {.kind = Kind::integer, .name = "ack_tick", .integer = 77},
        {.kind = Kind::object_begin, .name = "data"},
        {.kind = Kind::integer, .name = "target_x", .integer = -4},
        {.kind = Kind::integer, .name = "player_flags", .integer = 5, .names = flags_},
        {.kind = Kind::array_begin, .name = "more"},
        {.kind = Kind::integer, .integer = 11},
        {.kind = Kind::integer, .integer = 12},
        {.kind = Kind::end},
        {.kind = Kind::end},
        {.kind = Kind::string,
         .secrecy = wire::Secrecy::secret,
         .name = "password",
         .bytes = as_bytes("hunter2")},
        {.kind = Kind::boolean, .name = "local", .integer = 1},
        {.kind = Kind::raw, .name = "sha256", .bytes = as_bytes("\x01\xab")}};
    std::vector<wire::FieldValue> players_{
        {.kind = Kind::array_begin, .name = "clients"},
        {.kind = Kind::object_begin},
        {.kind = Kind::string, .name = "name", .bytes = as_bytes("ann")},
        {.kind = Kind::integer, .name = "score", .integer = 1},
        {.kind = Kind::end},
        {.kind = Kind::object_begin},
        {.kind = Kind::string, .name = "name", .bytes = as_bytes("bob")},
        {.kind = Kind::integer, .name = "score", .integer = 8},
        {.kind = Kind::end},
        {.kind = Kind::end},
        {.kind = Kind::string, .name = "name", .bytes = as_bytes("a server")}};

    void fill_items() {
        std::array<std::int32_t, 22> character{};
        character[1] = 48;
        character[2] = 48;
        character[15] = 5;
        character[19] = 4;
        items_.append({9, 0}, character);
        character[1] = 16;
        character[19] = 0;
        items_.append({9, 1}, character);
        items_.append({10, 0}, std::array<std::int32_t, 5>{1, 0, 0, 42, 9});
        items_.append({11, 0}, client_info("nameless tee"));
        items_.append({11, 1}, client_info("bob"));
        items_.append({0x4001, 8}, std::array<std::int32_t, 2>{123, -5});
    }

    static std::array<std::int32_t, 17> client_info(std::string_view name) {
        std::array<std::int32_t, 17> info{};
        pack_text(name, std::span{info}.first(4));
        pack_text("clan", std::span{info}.subspan(4, 3));
        pack_text("default", std::span{info}.subspan(8, 6));
        return info;
    }

    snapshot::Snapshot items_;
    record::TileMap world_{sample_map()};
    record::ItemTypes types_;
    record::SessionStats stats_;
    std::optional<map::Location> place_;
    std::vector<std::uint32_t> seers_{2, 3};
    std::vector<std::uint64_t> seen_{3, 1, 2, 3, 3, 1};
    std::vector<record::IdKind> id_kinds_{record::IdKind::server, record::IdKind::views};
    std::vector<record::RenumberedClient> renumbered_{{2, 0, 1}};
    std::vector<std::uint32_t> untold_{0, 1U << 16U | 1U << 17U | 1U << 18U, 0, 0, 0, 0};
    record::ItemSightings sightings_;

  public:
    record::MessageRecord message{.head = head,
                                  .name = "sv_chat",
                                  .vital = true,
                                  .sequence = 12,
                                  .size = 20,
                                  .values = chat_};
    record::MessageRecord input{
        .head = head, .name = "input", .system = true, .size = 30, .values = input_};
    record::MessageRecord unknown{
        .head = head, .size = 3, .number = 99, .raw = as_bytes("\x0f\xf0")};
    record::MessageRecord unknown_uuid{.head = head, .size = 17, .uuid = snapshot::Uuid{0xab, 1}};
    record::MessageRecord control{
        .head = head, .layer = record::MessageLayer::control, .name = "close", .size = 5};
    record::MessageRecord connless{.head = {.time = kTime,
                                            .session = 3,
                                            .direction = wire::Direction::s2c,
                                            .server_name = "ctf-1"},
                                   .layer = record::MessageLayer::connless,
                                   .name = "info",
                                   .size = 200,
                                   .values = players_};
    record::MapRecord map{.head = head,
                          .name = "dm1",
                          .crc = 0x00ff12ab,
                          .size = 5000,
                          .sha256 = std::array<std::uint8_t, 32>{1, 2, 255},
                          .source = "folder",
                          .width = 50,
                          .height = 40};
    record::SnapshotRecord snapshot{.head = head,
                                    .tick = 500,
                                    .delta_tick = 498,
                                    .crc_wanted = -5,
                                    .crc_got = -5,
                                    .bytes = 120,
                                    .parts = 2,
                                    .rebuilt = true};
    record::FindingRecord finding{.head = head,
                                  .id = record::FindingId::snapshot_crc_mismatch,
                                  .tick = 600,
                                  .offset = 17,
                                  .item = record::FindingItem{9, 2, "character"},
                                  .field = "health",
                                  .delta_tick = 590,
                                  .crc_wanted = 1,
                                  .crc_got = 2,
                                  .since_tick = 580,
                                  .lost = 4,
                                  .value = 70,
                                  .limit = 64,
                                  .expected = 71,
                                  .confirmed = 3,
                                  .part = 1,
                                  .ddnet_code = -205,
                                  .name = "dm1",
                                  .detail = "an item changed",
                                  .bytes = as_bytes("\xde\xad")};
    record::SummaryRecord summary{
        .head = {.time = kTime},
        .sessions = 2,
        .impaired =
            std::array<record::ImpairmentStats, 2>{{{100, 2, 1, 0, 3, 4}, {200, 5, 0, 7, 6, 8}}},
        .worlds = record::WorldStats{50, 49, 100, 1, 2, 3, 4}};

    record::WorldRecord world{.head = {.time = kTime},
                              .tick = 500,
                              .server = "127.0.0.1:8303",
                              .run = 2,
                              .views = 2,
                              .complete = true};
    record::LossRecord loss{
        .head = {.time = kTime}, .lost = 12, .since = kTime - 1'500'000'000, .cause = "disk_full"};
    record::SegmentRecord segment{
        .head = {.time = kTime}, .name = "game-20261121T161530Z-0001.jsonl.zst", .number = 1};
    record::ImpairmentRecord impairment{
        .head = {.time = kTime},
        .settings = "s2c:delay=40ms,loss=2%,burst=2.5,rate=1mbit",
        .seed = 7,
        .directions = {
            {{.delay_us = 1, .burst = 1.0, .rate_bps = 64'000},
             {.delay_us = 40'000, .loss_ppm = 20'000, .burst = 2.5, .rate_bps = 1'000'000}}}};
};

} // namespace tw::test
