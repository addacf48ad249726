#include "proxy/demo/demo_sink.h"

#include "map/identity.h"
#include "proxy/base/clock.h"
#include "proxy/record/client_ids.h"
#include "proxy/record/terminal_text.h"
#include "proxy/wire/text.h"

#include <utility>

#include <fmt/format.h>

namespace tw::demo {

namespace {

/// Returns whether the ids of items of this type are client ids, which vanilla Teeworlds uses as
/// array indices without checking them.
bool has_client_id(std::uint16_t type) {
    return type == snapshot::kCharacterType || type == snapshot::kPlayerInfoType ||
           type == snapshot::kClientInfoType;
}

bool is_vanilla_item(const snapshot::ItemView& item, const snapshot::ObjectSpec* object) {
    if (item.key.type == snapshot::kDescriptorType || item.key.type >= snapshot::kFirstUuidType) {
        return false;
    }
    if (has_client_id(item.key.type) && item.key.id >= kMaxVanillaClients) {
        return false;
    }
    if (object == nullptr) {
        return true; // vanilla ignores such an item
    }
    const auto client = snapshot::client_of(*object, item.key, item.data);
    return !client || *client < kMaxVanillaClients;
}

std::optional<std::uint16_t> vanilla_client_id(std::int32_t client) {
    return client >= 0 && client < kMaxVanillaClients
               ? std::optional{static_cast<std::uint16_t>(client)}
               : std::nullopt;
}

using snapshot::FieldSpec;
using snapshot::ItemKey;
using wire::FieldValue;
using Values = std::span<const FieldValue>;
using Ints = std::span<std::int32_t>;

std::optional<std::int64_t> find_integer_value(Values values, std::string_view name) {
    const auto found = std::ranges::find(values, name, &FieldValue::name);
    return found == values.end() ? std::nullopt : std::optional{found->integer};
}

/// Returns the client that a message concerns; nullopt if the client id is not valid in 0.7.
std::optional<std::uint16_t> find_message_client(Values values) {
    const auto id = find_integer_value(values, "client_id");
    const bool valid =
        id && *id >= 0 && *id < static_cast<std::int64_t>(record::Roster::kMaxClients);
    return valid ? std::optional{static_cast<std::uint16_t>(*id)} : std::nullopt;
}

void put_value(const FieldValue& value, Ints ints) {
    if (value.kind == FieldValue::Kind::string) {
        snapshot::encode_int_string(
            wire::sanitize_string(value.bytes, wire::kCleanAllControl | wire::kSkipBlanks), ints);
    } else {
        ints.front() = static_cast<std::int32_t>(value.integer);
    }
}

/// Copies the values of a message to the fields of an item that have the same names.
void copy_values_to_item(Values values, std::span<const FieldSpec> fields, Ints ints) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto field = std::ranges::find(fields, values[i].name, &FieldSpec::name);
        if (field == fields.end() || std::size_t{field->offset} + field->count > ints.size()) {
            continue;
        }
        const Ints room = ints.subspan(field->offset, field->count);
        if (values[i].kind != FieldValue::Kind::array_begin) {
            put_value(values[i], room);
            continue;
        }
        const auto end =
            std::ranges::find(values.subspan(i), FieldValue::Kind::end, &FieldValue::kind);
        const auto count = static_cast<std::size_t>(end - values.begin()) - i - 1;
        for (std::size_t k = 0; k < count && count <= room.size(); ++k) {
            const std::size_t each = room.size() / count;
            put_value(values[i + 1 + k], room.subspan(k * each, each));
        }
        i += count;
    }
}

std::span<const FieldSpec> fields_of(std::uint16_t type) {
    const auto* const object = snapshot::find_object(type, snapshot::Dialect::seven);
    return object == nullptr ? std::span<const FieldSpec>{} : object->fields;
}

/// A kind of loss: its count, and its sentence. The first `{}` in the sentence stands for the
/// count, the second `{}` for a text such as "2 ticks".
struct LossKind {
    std::uint64_t DemoLosses::*count;
    std::string_view sentence;
    std::uint64_t DemoLosses::*ticks = nullptr;
};

constexpr std::array kLossKinds{
    LossKind{&DemoLosses::items_over_limit, "left out {} item[s] in {}: more than a snapshot holds",
             &DemoLosses::ticks_over_limit},
    LossKind{&DemoLosses::items_without_id,
             "left out {} item[s] in {}: no id left for [its|their] player[s]",
             &DemoLosses::ticks_without_id},
    LossKind{&DemoLosses::worlds_over_limit, "left out {} world[s]: too many servers at once"},
    LossKind{&DemoLosses::messages_without_id,
             "left out {} message[s]: no id left for [its|their] player[s]"},
    LossKind{&DemoLosses::messages_over_limit, "left out {} message[s]: too many at once"},
    LossKind{&DemoLosses::late_snapshots, "left out {} snapshot[s] that arrived after a newer one"},
    LossKind{&DemoLosses::large_snapshots, "left out {} snapshot[s]: too large for a demo"},
    LossKind{&DemoLosses::unwritten_snapshots,
             "left out {} snapshot[s]: the disk was full or too slow"},
    LossKind{&DemoLosses::large_messages, "left out {} message[s]: too large for a demo"},
    LossKind{&DemoLosses::early_messages,
             "left out {} message[s]: too many before the first snapshot"},
    LossKind{&DemoLosses::sessions_without_map,
             "{} session[s] [has|have] no demo: [its|their] map is unknown"},
    LossKind{&DemoLosses::single_snapshot_demos,
             "{} session[s] [has|have] no demo: [it has|they have] only one snapshot of a map"},
};

/// Returns the part of a demo's file name that stands for the session ("s3") or the server
/// ("world", "world2").
std::string owner_name(std::uint32_t session, bool of_server) {
    if (!of_server) {
        return fmt::format("s{}", session);
    }
    return session <= 1 ? "world" : fmt::format("world{}", session);
}

/// Returns whether a client that records a demo would store the message. Clients do not store
/// system messages. Except for sv_pre_input, they store only vital messages.
bool is_recorded_by_clients(const record::MessageRecord& record) {
    return record.head.direction == wire::Direction::s2c && !record.system &&
           record.layer == record::MessageLayer::chunk && !record.payload.empty() &&
           (record.vital || record.name == "sv_pre_input");
}

bool has_secret(const record::MessageRecord& record) {
    return record.secrecy == wire::Secrecy::secret ||
           std::ranges::any_of(record.values, [](const auto& value) {
               return value.secrecy == wire::Secrecy::secret;
           });
}

} // namespace

void copy_vanilla_items(const snapshot::SnapshotView& items, snapshot::Snapshot& out) {
    out.clear();
    std::vector<std::int32_t> data;
    for (std::size_t i = 0; i < items.size(); ++i) {
        snapshot::ItemView item = items[i];
        const snapshot::ObjectSpec* const object =
            snapshot::find_object(item.key.type, snapshot::Dialect::six);
        if (!is_vanilla_item(item, object)) {
            continue;
        }
        if (object != nullptr) {
            data.assign(item.data.begin(), item.data.end());
            static_cast<void>(record::renumber_clients(
                *object, item.key, data, record::ClientIdScope::all, vanilla_client_id));
            item.data = data;
        }
        out.append(item.key, item.data);
    }
}

bool is_vanilla_message(const record::MessageRecord& message) {
    const auto names_too_high = [](const wire::FieldValue& value) {
        return value.integer >= kMaxVanillaClients && record::is_client_id_field(value.name);
    };
    return !message.uuid && std::ranges::none_of(message.values, names_too_high);
}

SevenDemoItems::ClientInfo SevenDemoItems::make_unknown_client() {
    ClientInfo info{};
    const Ints ints{info};
    for (const FieldSpec& field : fields_of(kDeClientInfoType)) {
        if (field.kind == snapshot::FieldKind::int_string) { // empty texts do not consist of zeros
            snapshot::encode_int_string({}, ints.subspan(field.offset, field.count));
        }
    }
    for (std::size_t part = 0; part < kSkinParts; ++part) {
        snapshot::encode_int_string(
            {}, ints.subspan(kSkinPartNamesIndex + part * kSkinPartInts, kSkinPartInts));
    }
    info[kCountryIndex] = -1;
    return info;
}

void SevenDemoItems::on_message(const record::MessageRecord& record) {
    if (record.system || record.layer != record::MessageLayer::chunk ||
        record.head.direction != wire::Direction::s2c) {
        return;
    }
    const Values values = record.values;
    const auto client = find_message_client(values);
    if (record.name == "sv_client_info" && client) {
        copy_values_to_item(values, fields_of(kDeClientInfoType),
                            clients_[*client] = make_unknown_client());
    } else if (record.name == "sv_client_drop" && client) {
        clients_.erase(*client);
    } else if ((record.name == "sv_team" || record.name == "sv_skin_change") && client) {
        if (const auto known = clients_.find(*client); known != clients_.end()) {
            copy_values_to_item(values, fields_of(kDeClientInfoType), known->second);
        }
    } else if (record.name == "sv_game_info") {
        copy_values_to_item(values, fields_of(kDeGameInfoType), game_.emplace());
    } else if (record.name == "sv_tune_params") {
        TuneParams& tuning = tuning_.emplace();
        std::size_t next = 0;
        for (const FieldValue& value : values) {
            // DDNet appends further values. Old versions of DDNet include laser_damage, which 0.7
            // does not know.
            if (next < tuning.size() && value.name != "laser_damage") {
                tuning[next++] = static_cast<std::int32_t>(value.integer);
            }
        }
    }
}

void SevenDemoItems::append_demo_items(const record::Roster* roster,
                                       snapshot::Snapshot& out) const {
    auto clients = clients_;
    if (roster != nullptr) {
        roster->for_each_player(
            [&](std::uint16_t client, const record::Roster::KnownPlayer& entry) {
                if (client < record::Roster::kMaxClients && !clients.contains(client)) {
                    ClientInfo& info = clients[client] = make_unknown_client();
                    info[kTeamIndex] = entry.team;
                    std::ranges::copy(entry.name, info.begin() + kNameIndex);
                }
            });
    }
    for (const auto& [client, info] : clients) {
        out.append({.type = kDeClientInfoType, .id = client}, info);
    }
    if (game_) {
        out.append({.type = kDeGameInfoType, .id = 0}, *game_);
    }
    if (tuning_) {
        out.append({.type = kDeTuneParamsType, .id = 0}, *tuning_);
    }
}

std::size_t SevenDemoItems::count_added_items(const record::Roster* roster) {
    std::size_t count = 0;
    if (roster != nullptr) {
        roster->for_each_player(
            [&](std::uint16_t client, const record::Roster::KnownPlayer& /*entry*/) {
                count += client < record::Roster::kMaxClients ? 1U : 0U;
            });
    }
    return count;
}

bool SevenDemoItems::has_demo_items(const snapshot::SnapshotView& items) {
    const std::size_t at = items.lower_bound({.type = kDeClientInfoType, .id = 0});
    return at < items.size() && items[at].key.type <= kDeTuneParamsType;
}

void SevenDemoItems::copy_with_demo_items(const snapshot::SnapshotView& items,
                                          const record::Roster* roster,
                                          snapshot::Snapshot& out) const {
    out.clear();
    std::size_t i = 0;
    for (; i < items.size() && items[i].key.type < kDeClientInfoType; ++i) {
        out.append(items[i].key, items[i].data);
    }
    append_demo_items(roster, out);
    for (; i < items.size(); ++i) {
        if (items[i].key.type > kDeTuneParamsType) {
            out.append(items[i].key, items[i].data);
        }
    }
}

void DemoLosses::merge(const DemoLosses& other) {
    for (const LossKind& kind : kLossKinds) {
        this->*kind.count += other.*kind.count;
        if (kind.ticks != nullptr) {
            this->*kind.ticks += other.*kind.ticks;
        }
    }
}

std::vector<std::string> describe_losses(const DemoLosses& losses) {
    std::vector<std::string> sentences;
    for (const LossKind& kind : kLossKinds) {
        const std::uint64_t ticks = kind.ticks == nullptr ? 0 : losses.*kind.ticks;
        if (const std::uint64_t count = losses.*kind.count; count != 0) {
            sentences.push_back(
                fmt::format(fmt::runtime(record::choose_plural(count, kind.sentence)), count,
                            record::count_with_noun(ticks, "tick[s]")));
        }
    }
    return sentences;
}

std::string safe_file_name(std::string_view text) {
    constexpr std::size_t kMaxLength = 64;
    std::string name;
    for (const char letter : text.substr(0, kMaxLength)) {
        const bool safe = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                          (letter >= 'A' && letter <= 'Z') || letter == '-' || letter == '_' ||
                          (letter == '.' && !name.empty());
        name += safe ? letter : '_';
    }
    return name.empty() ? "unknown" : name;
}

void DemoSink::on_record(const record::Record& record) {
    std::visit(
        [this](const auto* concrete) {
            if constexpr (requires { handle_record(*concrete); }) {
                handle_record(*concrete);
            }
        },
        record);
}

void DemoSink::handle_record(const record::SessionRecord& record) {
    // A new connection does not use data of the previous connection.
    if (const auto found = session_demos_.find(record.head.session);
        found != session_demos_.end()) {
        end_demo(found->second);
        session_demos_.erase(found);
    }
    if (record.event == record::SessionEvent::established && record.protocol.starts_with("0.7")) {
        session_demos_[record.head.session].is_seven = true;
    }
}

void DemoSink::handle_record(const record::MapRecord& record) {
    SessionDemo& session_demo = session_demos_[record.head.session];
    session_demo.map_name = record.name;
    session_demo.map_crc = record.crc;
    session_demo.map_sha256 = record.sha256;
    session_demo.map = record.file;
}

void DemoSink::handle_record(const record::MessageRecord& record) {
    if (record.name == "map_change" && record.system) {
        SessionDemo& session_demo = session_demos_[record.head.session];
        end_demo(session_demo);
        session_demo.pending = {};
        session_demo.seven_items.clear();
        return;
    }
    if (const auto session_demo = session_demos_.find(record.head.session);
        session_demo != session_demos_.end() && session_demo->second.is_seven) {
        session_demo->second.seven_items.on_message(record);
    }
    if (!options_.messages || !is_recorded_by_clients(record) ||
        (has_secret(record) && !options_.show_secrets) ||
        (options_.version < kFirstVersionWithSteps &&
         !session_demos_[record.head.session].is_seven && !is_vanilla_message(record))) {
        return;
    }
    SessionDemo& session_demo = session_demos_[record.head.session];
    const bool tuning = record.name == "sv_tune_params";
    if (tuning) {
        session_demo.tuning.assign(record.payload.begin(), record.payload.end());
    }
    if (!is_enabled_) {
        return;
    }
    if (session_demo.demo) {
        add_message(session_demo, record.payload);
        return;
    }
    PendingMessages& pending = session_demo.pending;
    if (pending.bytes + record.payload.size() > kMaxPendingBytes) {
        ++losses_.early_messages;
        return;
    }
    pending.list.emplace_back(record.payload.begin(), record.payload.end());
    pending.bytes += record.payload.size();
    pending.has_tuning = pending.has_tuning || tuning;
}

void DemoSink::add_message(SessionDemo& session_demo, std::span<const std::byte> payload) {
    if (!session_demo.demo->encoder.append_message(payload, session_demo.demo->unflushed_chunks)) {
        ++losses_.large_messages;
    }
}

void DemoSink::handle_record(const record::SnapshotRecord& record) {
    if (!record.rebuilt || !is_enabled_) {
        return;
    }
    SessionDemo& session_demo = session_demos_[record.head.session];
    if (record.ordinal == 0) {
        session_demo.is_seven = record::dialect_of(record) == snapshot::Dialect::seven;
        end_demo(session_demo); // the next map has other ticks and items
        session_demo.given_up_at.reset();
    }
    if (session_demo.map_name.empty()) {
        losses_.sessions_without_map += std::exchange(session_demo.is_map_missing, true) ? 0U : 1U;
        return;
    }
    if (session_demo.given_up_at && record.tick - *session_demo.given_up_at < kRestartDelayTicks) {
        ++losses_.unwritten_snapshots;
        return;
    }
    session_demo.given_up_at.reset();
    if (!session_demo.demo) {
        open_demo(session_demo, record);
    }
    OpenDemo& demo = *session_demo.demo;
    DemoEncoder& encoder = demo.encoder;
    if (encoder.first_tick() && record.tick <= encoder.last_tick()) {
        ++losses_.late_snapshots;
        return;
    }
    const bool first = !encoder.first_tick();
    if (!encoder.append_snapshot(record.tick, demo_items(session_demo, record),
                                 demo.unflushed_chunks)) {
        ++losses_.large_snapshots;
        return;
    }
    ++demo.unflushed_snapshots;
    if (first) {
        const PendingMessages pending = std::exchange(session_demo.pending, {});
        for (const Bytes& message : pending.list) {
            add_message(session_demo, message);
        }
        if (!pending.has_tuning && !session_demo.tuning.empty()) {
            add_message(session_demo, session_demo.tuning);
        }
        return;
    }
    if (record.tick - demo.last_flush_tick >= kFlushTicks || !demo.file ||
        demo.unflushed_chunks.size() >= kFlushBytes) {
        flush_chunks(demo);
        demo.last_flush_tick = record.tick;
        if (!demo.file) {
            session_demo.demo.reset();
            session_demo.given_up_at = record.tick;
        }
    }
}

snapshot::SnapshotView DemoSink::demo_items(const SessionDemo& session_demo,
                                            const record::SnapshotRecord& record) {
    if (session_demo.is_seven &&
        !(record.is_from_demo && SevenDemoItems::has_demo_items(record.items))) {
        session_demo.seven_items.copy_with_demo_items(record.items, record.roster, demo_items_);
        return demo_items_.view();
    }
    if (!session_demo.is_seven && options_.version < kFirstVersionWithSteps) {
        copy_vanilla_items(record.items, demo_items_);
        return demo_items_.view();
    }
    return record.items;
}

void DemoSink::open_demo(SessionDemo& session_demo, const record::SnapshotRecord& record) const {
    DemoHeader header{
        .version = session_demo.is_seven ? kSevenDemoVersion : options_.version,
        .net_version = std::string{session_demo.is_seven ? kSevenNetVersion : kNetVersion},
        .map_name = map::is_valid_map_name(session_demo.map_name)
                        ? session_demo.map_name
                        : safe_file_name(session_demo.map_name),
        .map_crc = session_demo.map_crc,
        .type = options_.of_server ? "server" : "client",
        .timestamp =
            base::format_utc(record.head.time / record::kNanosecondsPerSecond, "%Y-%m-%d_%H-%M-%S"),
        .sha256 = session_demo.map_sha256};
    if (header.version == kFirstVersionWithSha256 && !header.sha256) {
        header.version = kFirstVersionWithSteps; // the last version without the map's SHA-256
    }
    std::string name = fmt::format(
        "{}-{}-{}.demo",
        base::format_utc(record.head.time / record::kNanosecondsPerSecond,
                         base::kFileNameTimeFormat),
        owner_name(record.head.session, options_.of_server), safe_file_name(session_demo.map_name));
    const auto dialect = session_demo.is_seven ? snapshot::Dialect::seven : snapshot::Dialect::six;
    session_demo.demo.emplace(OpenDemo{.encoder = DemoEncoder{header.version, dialect},
                                       .header = std::move(header),
                                       .map = session_demo.map,
                                       .name = std::move(name),
                                       .last_flush_tick = record.tick});
}

/// Passes the collected chunks to the file. Sets `demo.file` to nullopt if the demo ends
/// because the queue or disk was full.
void DemoSink::flush_chunks(OpenDemo& demo) {
    if (demo.unflushed_chunks.empty()) {
        return;
    }
    const std::uint64_t waiting = std::exchange(demo.unflushed_snapshots, 0);
    if (demo.file) {
        if (!files_->append(*demo.file, std::exchange(demo.unflushed_chunks, {}))) {
            close_file(demo);
            losses_.unwritten_snapshots += waiting;
        }
        return;
    }
    Bytes bytes = DemoEncoder::encode_start(demo.header, demo.map ? std::span{*demo.map}
                                                                  : std::span<std::byte>{});
    bytes.insert(bytes.end(), demo.unflushed_chunks.begin(), demo.unflushed_chunks.end());
    demo.unflushed_chunks.clear();
    demo.file = files_->create(options_.folder / demo.name, std::move(bytes));
    if (!demo.file) {
        losses_.unwritten_snapshots += waiting;
    }
}

void DemoSink::close_file(OpenDemo& demo) {
    for (DemoPatch& patch : demo.encoder.header_patches()) {
        files_->overwrite_bytes(*demo.file, patch.at, std::move(patch.bytes));
    }
    files_->close(*demo.file);
    demo.file.reset();
}

void DemoSink::end_demo(SessionDemo& session_demo) {
    if (session_demo.demo && session_demo.demo->file) {
        OpenDemo& demo = *session_demo.demo;
        demo.encoder.append_final_chunk(demo.unflushed_chunks);
        flush_chunks(demo);
        if (demo.file) {
            close_file(demo);
        }
    } else if (session_demo.demo && session_demo.demo->encoder.first_tick()) {
        ++losses_.single_snapshot_demos;
    }
    session_demo.demo.reset();
}

void DemoSink::handle_record(const record::FindingRecord& record) {
    if (record::severity_of(record) == record::Severity::info) {
        return;
    }
    if (const auto found = session_demos_.find(record.head.session);
        found != session_demos_.end() && found->second.demo) {
        found->second.demo->encoder.add_marker();
    }
}

void DemoSink::set_enabled(bool on) {
    is_enabled_ = on;
    for (auto& [unused, session_demo] : session_demos_) {
        end_demo(session_demo);
        session_demo.given_up_at.reset();
        session_demo.pending = {};
    }
}

void DemoSink::end_demos() {
    for (auto& [unused, session_demo] : session_demos_) {
        end_demo(session_demo);
    }
    session_demos_.clear();
}

} // namespace tw::demo
