#include "proxy/inspect/inspector.h"

#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/diagnosis/diagnosis.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

namespace {

/// Type of 0.7's de_client_info. These items describe the players and exist in demos only.
constexpr std::uint16_t kSevenClientInfo = 13;

/// Whether the message exists in 0.7 demos only. Clients write such messages when players join or
/// leave.
bool exists_only_in_demos(const wire::MessageSpec& spec) {
    return spec.name == "de_client_enter" || spec.name == "de_client_leave";
}

/// The most bytes of padding after a demo's message. Demos pad messages to whole ints of four
/// bytes.
constexpr std::size_t kMaxPaddingBytes = 3;

/// Whether a 0.7 tuning message was decoded with the field laser_damage. The last parameter is a
/// delay, which is never 0. If the last byte is 0, it is padding, and the message has no
/// laser_damage.
bool is_read_with_laser_damage(const wire::MessageSpec& spec, const wire::DecodedFields& fields) {
    return spec.id == wire::MessageId::sv_tune_params && spec.dialect == snapshot::Dialect::seven &&
           std::ranges::find(fields.values, "laser_damage", &wire::FieldValue::name) !=
               fields.values.end();
}

/// Returns the message without its padding, if the fields show where the message ends.
std::span<const std::byte> without_padding(std::span<const std::byte> payload,
                                           const wire::MessageHeader& head,
                                           wire::DecodedFields& fields) {
    if (head.spec == nullptr) {
        return payload;
    }
    wire::decode_fields(*head.spec, head.body, fields);
    if (is_read_with_laser_damage(*head.spec, fields) && head.body.back() == std::byte{}) {
        return payload.first(payload.size() - 1);
    }
    const auto trailing = fields.error ? std::span<const std::byte>{} : fields.trailing;
    const bool padding =
        trailing.size() <= kMaxPaddingBytes &&
        std::ranges::all_of(trailing, [](std::byte b) { return b == std::byte{}; });
    return padding ? payload.first(payload.size() - trailing.size()) : payload;
}

/// Decodes a demo's delta. Demo players reject an empty delta, so it is an error here. On the
/// network, an empty delta means that nothing changed.
snapshot::Result<void> decode_demo_delta(std::span<const std::byte> body, snapshot::Delta& out,
                                         const snapshot::AgreedSizes& sizes) {
    if (body.empty()) {
        return tl::unexpected{
            snapshot::DecodeError{.code = snapshot::DecodeErrc::deleted_out_of_range}};
    }
    return snapshot::decode_delta(body, out, sizes);
}

} // namespace

DemoSession::DemoSession(std::uint32_t number, std::string client, std::string server,
                         const Options& options, MapSource& maps, record::RecordSink& sink,
                         snapshot::Dialect dialect)
    : reporter_{number, sink, std::move(client), std::move(server)},
      message_reporter_{options.emits_message_records, options.shown_commands, Observers::none()},
      described_messages_{options.described_messages}, map_tracker_{maps},
      item_types_{*options.objects}, item_sizes_{item_types_.objects().sizes(dialect)} {
    item_types_.start_connection(dialect);
}

void DemoSession::open_session(record::Timestamp time) {
    reporter_.set_head(time, std::nullopt);
    reporter_.emit_session_event(record::SessionEvent::open, protocol_name());
    reporter_.emit_session_event(record::SessionEvent::established, protocol_name());
}

void DemoSession::set_map(const MapAnnouncement& announced, std::vector<std::byte> file) {
    map_tracker_.set_demo_map(announced, std::move(file), reporter_);
}

record::SnapshotRecord DemoSession::begin_snapshot_record(snapshot::Tick tick, snapshot::Tick base,
                                                          std::size_t bytes) {
    record::SessionStats& stats = reporter_.stats;
    ++stats.snapshots;
    stats.delta_bytes += bytes;
    if (base != snapshot::kNoBase) {
        stats.delta_distance.add(std::int64_t{tick} - base);
    }
    return {.head = reporter_.head(), .tick = tick, .delta_tick = base, .bytes = bytes};
}

void DemoSession::accept_snapshot(record::SnapshotRecord& record,
                                  const snapshot::SnapshotView& items) {
    record::SessionStats& stats = reporter_.stats;
    ++stats.verified;
    stats.items.add(static_cast<std::int64_t>(items.size()));
    stats.snapshot_bytes.add(static_cast<std::int64_t>(items.size_bytes()));
    record.rebuilt = true;
    record.crc_got = items.checksum();
    record.items = items;
    if (has_snapshot()) {
        record.previous = current_snapshot_.view();
    }
    item_types_.learn_types(record.items, record.previous.value_or(snapshot::SnapshotView{}));
    if (is_seven()) {
        read_players(record.items);
        record.roster = &roster_;
    }
    record.ordinal = num_snapshots_++;
    record.types = &item_types_;
    record.tile_map = map_tracker_.tile_map();
    record.is_from_demo = true;
    snapshot_checks_.check_snapshot(record, reporter_);
    reporter_.emit(record);
    current_tick_ = record.tick;
}

void DemoSession::read_players(const snapshot::SnapshotView& items) {
    roster_.clear();
    for_each_item_of_type(items, kSevenClientInfo, [this](const snapshot::ItemView& item) {
        constexpr std::size_t kTeam = 1;
        constexpr std::size_t kName = 2;
        record::Roster::KnownPlayer entry;
        if (item.data.size() >= kName + entry.name.size()) {
            entry.team = item.data[kTeam];
            std::ranges::copy(item.data.subspan(kName, entry.name.size()), entry.name.begin());
            roster_.set_player(item.key.id, entry);
            if (item.data.front() != 0) {
                roster_.set_own_id(item.key.id);
            }
        }
    });
}

void DemoSession::reject_snapshot(record::SnapshotRecord& record, record::FindingRecord finding) {
    finding.tick = record.tick;
    finding.delta_tick = record.delta_tick;
    ++(finding.id == record::FindingId::snapshot_unknown_base ? reporter_.stats.unknown_base
                                                              : reporter_.stats.undecodable);
    reporter_.report_finding(finding);
    reporter_.emit(record);
}

void DemoSession::on_full_snapshot(snapshot::Tick tick, std::size_t bytes,
                                   const snapshot::SnapshotView& items) {
    next_snapshot_.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
        next_snapshot_.append(items[i].key, items[i].data);
    }
    ++reporter_.stats.full;
    record::SnapshotRecord record = begin_snapshot_record(tick, snapshot::kNoBase, bytes);
    accept_snapshot(record, next_snapshot_.view());
    std::swap(current_snapshot_, next_snapshot_);
}

void DemoSession::on_invalid_snapshot(snapshot::Tick tick, std::size_t bytes,
                                      record::FindingRecord finding) {
    ++reporter_.stats.full;
    record::SnapshotRecord record = begin_snapshot_record(tick, snapshot::kNoBase, bytes);
    reject_snapshot(record, finding);
}

bool DemoSession::on_delta(snapshot::Tick tick, std::span<const std::byte> body) {
    record::SnapshotRecord record = begin_snapshot_record(tick, current_tick_, body.size());
    if (!has_snapshot()) {
        reject_snapshot(record, {.id = record::FindingId::snapshot_unknown_base});
        return false;
    }
    snapshot::DeltaWarnings warnings;
    auto applied = decode_demo_delta(body, decoded_delta_, item_sizes_);
    if (applied) {
        applied = snapshot::apply_delta(current_snapshot_.view(), decoded_delta_, next_snapshot_,
                                        warnings);
    }
    if (!applied) {
        reject_snapshot(record, make_decode_error_finding(applied.error(), body, item_types_));
        return false;
    }
    const snapshot::AssembledDelta seen{
        .tick = tick, .delta_tick = current_tick_, .body = body, .marked = {}};
    report_delta_warnings(seen, warnings, item_types_, reporter_);
    accept_snapshot(record, next_snapshot_.view());
    std::swap(current_snapshot_, next_snapshot_);
    return true;
}

void DemoSession::on_unchanged_snapshot(snapshot::Tick tick) {
    if (!has_snapshot()) {
        return;
    }
    record::SnapshotRecord record = begin_snapshot_record(tick, current_tick_, 0);
    ++reporter_.stats.empty;
    accept_snapshot(record, current_snapshot_.view());
}

void DemoSession::on_message(std::span<const std::byte> payload, wire::DecodedFields& fields) {
    if (payload.empty()) {
        return; // demo players ignore such a message
    }
    ++reporter_.direction_stats().messages;
    auto head = wire::decode_message_header(payload, item_types_.dialect(), *described_messages_);
    if (!head) {
        MessageReporter::report_unreadable_chunk({.payload = payload}, head.error(), reporter_);
        return;
    }
    auto exact = without_padding(payload, *head, fields);
    const auto padded_body = std::exchange(head->body, exact.subspan(head->header_size));
    // A demo does not contain the server's version.
    const auto reading = ServerProgram{}.interpret_message_id(*head);
    if (reading == ServerProgram::IdInterpretation::mistaken) {
        exact = payload;
        head->body = padded_body;
        head->spec = nullptr;
    }
    // A demo does not tell whether a message was vital. The message counts as vital if messages of
    // its kind always are, or if its kind is unknown.
    const wire::Chunk chunk{.vital = head->spec == nullptr || head->spec->vital, .payload = exact};
    const bool expected = head->spec != nullptr &&
                          (exists_only_in_demos(*head->spec) ||
                           wire::is_processed_by_receivers(*head->spec, head->system,
                                                           wire::Direction::s2c, chunk.vital));
    AcceptedMessage message{.chunk = chunk,
                            .head = *head,
                            .is_expected = expected,
                            .is_meaning_uncertain =
                                reading == ServerProgram::IdInterpretation::likely};
    message_reporter_.report_message(message, map_tracker_, fields, reporter_);
}

void DemoSession::close_session(record::Timestamp time, std::string_view reason) {
    reporter_.set_head(time, std::nullopt);
    reporter_.emit_session_event(record::SessionEvent::close, protocol_name(), reason);
    reporter_.emit_summary();
}

namespace {

/// A session's memory use is measured again after this many datagrams. Each of them adds at most
/// one snapshot.
constexpr std::uint32_t kDatagramsPerCharge = 16;

} // namespace

Inspector::~Inspector() {
    for (auto& [unused, watched] : open_sessions_) {
        release_memory_charge(watched);
    }
}

void Inspector::update_memory_charge(OpenSession& watched) const {
    watched.datagrams_until_charge = kDatagramsPerCharge;
    const std::size_t bytes = watched.session->memory_bytes();
    options_.memory_budget->update_used_bytes(watched.charged_bytes, bytes);
    watched.charged_bytes = bytes;
}

void Inspector::release_memory_charge(OpenSession& watched) const {
    if (options_.memory_budget != nullptr) {
        options_.memory_budget->update_used_bytes(watched.charged_bytes, 0);
        watched.charged_bytes = 0;
    }
}

void Inspector::free_memory(record::Timestamp time) {
    map_source_->free_unused_maps();
    std::vector<OpenSession*> longest_silent;
    for (auto& [unused, watched] : open_sessions_) {
        watched.session->free_spare_memory();
        update_memory_charge(watched);
        longest_silent.push_back(&watched);
    }
    std::ranges::sort(longest_silent, {}, [](const OpenSession* watched) {
        return std::pair{watched->last_datagram_time, watched->session->number()};
    });
    for (OpenSession* const watched : longest_silent) {
        if (!options_.memory_budget->is_nearly_full()) {
            return;
        }
        watched->session->free_traffic_memory(time);
        update_memory_charge(*watched);
    }
}

void Inspector::on_open(std::uint64_t key, record::Timestamp time, std::string client,
                        std::string server, std::optional<SessionCheckpoint> checkpoint,
                        std::string_view server_name) {
    if (checkpoint && checkpoint->is_closed) {
        sessions_closed_elsewhere_.insert_or_assign(
            key, ClosedSession{std::move(client), std::move(server), server_name});
        return;
    }
    const std::uint32_t number =
        newest_session_number_->fetch_add(1, std::memory_order_relaxed) + 1;
    auto session = std::make_unique<Session>(number, std::move(client), std::move(server), options_,
                                             *map_source_, *sink_);
    session->set_server_name(server_name);
    if (checkpoint) {
        session->set_pending_checkpoint(*std::move(checkpoint));
    }
    session->open_session(time);
    OpenSession& watched = open_sessions_[key];
    release_memory_charge(watched);
    watched = {.session = std::move(session), .last_datagram_time = time};
    ++num_sessions_opened_;
}

void Inspector::on_datagram(std::uint64_t key, record::Timestamp time, wire::Direction direction,
                            std::span<const std::byte> bytes, std::span<const std::byte> next) {
    decode_buffers_.packet_scratch.begin_datagram(bytes, next);
    auto found = open_sessions_.find(key);
    if (found == open_sessions_.end()) {
        auto closed = sessions_closed_elsewhere_.extract(key);
        if (closed.empty()) {
            return;
        }
        ClosedSession& again = closed.mapped();
        on_open(key, time, std::move(again.client), std::move(again.server), std::nullopt,
                again.server_name);
        found = open_sessions_.find(key);
    }
    OpenSession& watched = found->second;
    watched.last_datagram_time = time;
    current_session_ = watched.session.get();
    watched.session->on_datagram(time, direction, bytes, decode_buffers_);
    current_session_ = nullptr;
    if (options_.memory_budget == nullptr || --watched.datagrams_until_charge != 0) {
        return;
    }
    update_memory_charge(watched);
    if (options_.memory_budget->is_exceeded()) {
        free_memory(time);
    }
}

std::optional<SessionCheckpoint> Inspector::make_checkpoint(std::uint64_t key) const {
    if (sessions_closed_elsewhere_.contains(key)) {
        return SessionCheckpoint{.map = {}, .is_closed = true};
    }
    const auto found = open_sessions_.find(key);
    return found == open_sessions_.end() ? std::nullopt
                                         : std::optional{found->second.session->make_checkpoint()};
}

std::vector<std::byte> Inspector::encode_current_checkpoint() const {
    const SessionCheckpoint checkpoint =
        current_session_ == nullptr ? SessionCheckpoint{} : current_session_->make_checkpoint();
    return checkpoint.token_form == TokenForm::unknown ? std::vector<std::byte>{}
                                                       : encode_checkpoint(checkpoint);
}

void Inspector::restore_session(std::uint64_t key, SessionCheckpoint checkpoint) {
    if (const auto found = open_sessions_.find(key); found != open_sessions_.end()) {
        found->second.session->set_pending_checkpoint(std::move(checkpoint));
        found->second.datagrams_until_charge = 1; // the next datagram updates the memory charge
    }
}

void Inspector::on_missed_datagrams(std::uint64_t key, record::Timestamp time, std::uint64_t lost,
                                    std::string_view reason) {
    if (const auto found = open_sessions_.find(key); found != open_sessions_.end()) {
        found->second.session->on_missed_datagrams(time, lost, reason);
        return;
    }
    if (sessions_closed_elsewhere_.contains(key)) {
        return;
    }
    for (auto& [unused, watched] : open_sessions_) {
        // The session of the lost datagrams is unknown, so every session reports a gap. The gap
        // does not count the datagrams, because they are added to the totals below.
        watched.session->on_missed_datagrams(time, 0, reason);
    }
    totals_of_closed_sessions_.gap_lost += lost;
}

void Inspector::on_full_snapshot_request(std::uint64_t key, record::Timestamp time) {
    if (const auto found = open_sessions_.find(key); found != open_sessions_.end()) {
        found->second.session->on_full_snapshot_request(time);
    }
}

bool Inspector::wants_full_snapshot(std::uint64_t key) const {
    const auto found = open_sessions_.find(key);
    if (found == open_sessions_.end()) {
        return false;
    }
    const SnapshotTracker& snapshots = found->second.session->snapshot_tracker();
    return snapshots.needs_full_snapshot() && snapshots.dialect() == snapshot::Dialect::six;
}

void Inspector::on_close(std::uint64_t key, record::Timestamp time, std::string_view reason) {
    sessions_closed_elsewhere_.erase(key);
    const auto found = open_sessions_.find(key);
    if (found == open_sessions_.end()) {
        return;
    }
    OpenSession& watched = found->second;
    watched.session->close_session(time, reason, decode_buffers_);
    totals_of_closed_sessions_.merge(watched.session->totals());
    release_memory_charge(watched);
    open_sessions_.erase(found);
}

std::unique_ptr<DemoSession> Inspector::begin_demo(record::Timestamp time, std::string client,
                                                   std::string server, snapshot::Dialect dialect) {
    const std::uint32_t number =
        newest_session_number_->fetch_add(1, std::memory_order_relaxed) + 1;
    auto playback = std::make_unique<DemoSession>(number, std::move(client), std::move(server),
                                                  options_, *map_source_, *sink_, dialect);
    playback->open_session(time);
    ++num_sessions_opened_;
    return playback;
}

void Inspector::end_demo(DemoSession& playback, record::Timestamp time, std::string_view reason) {
    playback.close_session(time, reason);
    totals_of_closed_sessions_.merge(playback.totals());
}

std::vector<std::uint64_t> Inspector::open_session_keys() const {
    std::vector<std::uint64_t> keys;
    keys.reserve(open_sessions_.size());
    for (const auto& [key, unused] : open_sessions_) {
        keys.push_back(key);
    }
    std::ranges::sort(keys, {},
                      [&](std::uint64_t key) { return open_sessions_.at(key).session->number(); });
    return keys;
}

void Inspector::emit_summaries() {
    for (const std::uint64_t key : open_session_keys()) {
        Session& session = *open_sessions_.at(key).session;
        session.emit_summary(session.last_time());
    }
}

void Inspector::close_all_sessions(record::Timestamp time, std::string_view reason) {
    for (const std::uint64_t key : open_session_keys()) {
        on_close(key, time, reason);
    }
}

void Inspector::for_each_session(
    const std::function<void(std::uint32_t number, const record::SessionStats&)>& see) const {
    for (const std::uint64_t key : open_session_keys()) {
        const Session& session = *open_sessions_.at(key).session;
        see(session.number(), session.totals());
    }
}

record::SessionStats Inspector::totals() const {
    record::SessionStats totals = totals_of_closed_sessions_;
    for (const auto& [unused, watched] : open_sessions_) {
        totals.merge(watched.session->totals());
    }
    return totals;
}

} // namespace tw::inspect
