#include "proxy/inspect/message_reporter.h"

#include "proxy/wire/connless.h"
#include "proxy/wire/message_layouts.h"

#include <algorithm>
#include <optional>

namespace tw::inspect {

namespace {

constexpr std::string_view kCommandInfo = "sv_command_info";
constexpr std::string_view kCommandInfoRemove = "sv_command_info_remove";

/// Whether a system message with this id belongs to the remote console, in the message's dialect or
/// in 0.6. A sender that forgets the system bit, or uses 0.6's ids in 0.7, still sends passwords.
bool has_console_id(const wire::MessageHeader& head) {
    const auto is_secret = [&](wire::Dialect dialect) {
        const wire::MessageSpec* const spec = wire::find_message(true, head.number, dialect);
        return spec != nullptr && spec->secrecy == wire::Secrecy::secret;
    };
    return !head.uuid && (is_secret(head.dialect) || is_secret(wire::Dialect::six));
}

/// Returns `secret` if the message may contain a password, a command or a code. Unknown system
/// messages are secret, too, because a newer remote console may send them.
wire::Secrecy secrecy_of(const wire::MessageHeader& head) {
    const wire::MessageSpec* const spec = head.spec;
    if (spec == nullptr) {
        return head.system ? wire::Secrecy::secret : wire::Secrecy::open;
    }
    const auto secret_field =
        std::ranges::find(spec->fields, wire::Secrecy::secret, &wire::MessageField::secrecy);
    const bool secret =
        spec->secrecy == wire::Secrecy::secret || spec->id == wire::MessageId::cl_say ||
        spec->id == wire::MessageId::sv_chat || spec->id == wire::MessageId::cl_command ||
        has_console_id(head) || secret_field != spec->fields.end();
    return secret ? wire::Secrecy::secret : wire::Secrecy::open;
}

/// Makes the fields secret if the message is a remote console message without the system bit. Such
/// a message was decoded as a game message, so some of its fields are invalid.
void hide_misread_console_texts(const wire::MessageHeader& head, wire::DecodedFields& fields) {
    if ((!fields.error && !std::ranges::any_of(fields.values, &wire::FieldValue::out_of_range)) ||
        !has_console_id(head)) {
        return;
    }
    for (wire::FieldValue& value : fields.values) {
        value.secrecy = wire::Secrecy::secret;
    }
}

/// Removes the data of snapshot parts and map chunks from the fields. For a map chunk, adds its
/// offset in the map file.
void remove_bulk_data(const AcceptedMessage& message, const MapTracker& maps,
                      wire::DecodedFields& fields) {
    const wire::MessageId id = message.head.spec->id;
    const bool map_data = id == wire::MessageId::map_data;
    if ((!wire::is_snapshot(id) && !map_data) || fields.error || fields.values.empty() ||
        fields.values.back().kind != wire::FieldValue::Kind::raw) {
        return;
    }
    fields.values.pop_back(); // the snapshot or map record contains the data
    if (!map_data) {
        return;
    }
    if (const auto chunk = wire::decode_map_data(message.head.body, message.head.dialect)) {
        if (const auto offset = maps.file_offset_of_chunk(*chunk)) {
            fields.values.push_back({.name = "offset", .integer = *offset});
        }
    }
}

/// Returns a copy of the first value that is out of range. A finding needs the copy if the value is
/// removed from the record.
std::optional<wire::FieldValue> find_value_out_of_range(const wire::DecodedFields& fields) {
    const auto odd = std::ranges::find_if(fields.values, &wire::FieldValue::out_of_range);
    return odd == fields.values.end() ? std::nullopt : std::optional{*odd};
}

/// Returns the record of a message, without name, values and raw bytes. The caller sets the name
/// and values of a known message, or the raw bytes of an unknown one.
record::MessageRecord make_message_record(const AcceptedMessage& message,
                                          const Reporter& reporter) {
    return {.head = reporter.head(),
            .system = message.head.system,
            .vital = message.chunk.vital,
            .sequence = message.chunk.sequence,
            .size = message.chunk.payload.size(),
            .number = message.head.number,
            .uuid = message.head.uuid,
            .payload = message.chunk.payload};
}

/// Whether no bytes follow the fields of a snapshot message. If so, the message causes no finding,
/// because its fields are never out of range.
bool has_no_trailing_bytes(const wire::SnapshotBody& snapshot, std::span<const std::byte> body) {
    return snapshot.data_offset + snapshot.data.size() == body.size();
}

/// A decoded message, control packet or connless packet.
struct DecodedMessage {
    std::string_view name;
    std::span<const std::byte> bytes; ///< message id and body
    std::size_t offset;               ///< offset of `bytes` in the packet's payload
    std::size_t header_size;
    wire::Secrecy secrecy;
};

void report_message_warnings(const DecodedMessage& decoded, const wire::DecodedFields& fields,
                             const std::optional<wire::FieldValue>& odd, Reporter& reporter) {
    const std::size_t body = decoded.offset + decoded.header_size;
    if (fields.error) {
        reporter.report_finding(
            {.id = record::FindingId::message_truncated,
             .offset = body + fields.error->offset,
             .name = decoded.name,
             .detail = snapshot::error_info(fields.error->code).sentence,
             .bytes = decoded.bytes.first(std::min<std::size_t>(decoded.bytes.size(), 64)),
             .secrecy = decoded.secrecy});
        return;
    }
    if (!fields.trailing.empty()) {
        reporter.report_finding_once(
            {.id = record::FindingId::message_trailing_bytes,
             .offset = decoded.offset + decoded.bytes.size() - fields.trailing.size(),
             .name = decoded.name,
             .bytes = fields.trailing,
             .secrecy = decoded.secrecy});
    }
    if (odd) {
        const bool unread = wire::is_malformed_number(*odd);
        reporter.report_finding_once({.id = record::FindingId::message_out_of_range,
                                      .offset = body + odd->offset,
                                      .value = unread ? std::nullopt : std::optional{odd->integer},
                                      .name = decoded.name,
                                      .detail = odd->name,
                                      .bytes = odd->bytes,
                                      .secrecy = odd->secrecy});
    }
}

} // namespace

void MessageReporter::report_unreadable_chunk(const wire::Chunk& chunk,
                                              const wire::WireError& error, Reporter& reporter) {
    reporter.report_finding(
        {.id = record::FindingId::message_id_invalid,
         .offset = chunk.offset + error.offset,
         .bytes = chunk.payload.first(std::min<std::size_t>(chunk.payload.size(), 32)),
         .secrecy = wire::Secrecy::secret}); // the chunk may be a damaged login
}

void MessageReporter::report_control(const wire::Packet& packet, const wire::Control& control,
                                     wire::DecodedFields& fields, Reporter& reporter) const {
    if (!emits_records_) {
        return;
    }
    auto& values = fields.values;
    values.clear();
    if (control.kind == wire::ControlKind::close) {
        values.push_back({.kind = wire::FieldValue::Kind::string,
                          .name = wire::table::kCloseReason.name,
                          .bytes = std::as_bytes(std::span{control.reason})});
    }
    if (control.token) {
        values.push_back({.kind = wire::FieldValue::Kind::raw,
                          .name = wire::table::kControlToken.name,
                          .bytes = std::as_bytes(std::span{*control.token})});
    }
    reporter.emit(record::MessageRecord{.head = reporter.head(),
                                        .layer = record::MessageLayer::control,
                                        .name = wire::control_name(control.kind),
                                        .size = packet.payload.size(),
                                        .number = control.raw_kind,
                                        .values = values});
}

void MessageReporter::report_connless(const wire::Packet& packet, wire::DecodedFields& fields,
                                      Reporter& reporter) const {
    record::MessageRecord record{.head = reporter.head(),
                                 .layer = record::MessageLayer::connless,
                                 .size = packet.payload.size()};
    const wire::ConnlessSpec* const spec = wire::find_connless(packet.payload, packet.dialect);
    if (spec == nullptr) {
        if (emits_records_) {
            record.raw = packet.payload;
            reporter.emit(record);
        }
        return;
    }
    wire::decode_connless(*spec, packet, fields);
    const auto odd = find_value_out_of_range(fields);
    if (emits_records_) {
        std::erase_if(fields.values,
                      wire::is_malformed_number); // records leave out malformed numbers
        record.name = spec->name;
        record.values = fields.values;
        reporter.emit(record);
    }
    if (spec->fields.empty()) {
        return; // the fields of such a packet are unknown
    }
    report_message_warnings({.name = spec->name,
                             .bytes = packet.payload,
                             .offset = 0,
                             .header_size = wire::kConnlessPrefixSize,
                             .secrecy = wire::Secrecy::open},
                            fields, odd, reporter);
}

void MessageReporter::update_announced_commands(const wire::MessageHeader& head) {
    if (head.spec->name == kCommandInfoRemove) {
        announced_commands_.remove(wire::find_removed_command(head.body).value_or(""));
    }
    const auto info =
        head.spec->name == kCommandInfo ? wire::decode_command_info(head.body) : std::nullopt;
    if (!info) {
        return;
    }
    announced_commands_.remove(info->name);
    if (!wire::may_show_arguments(info->name, {}) &&
        wire::is_described_harmless(info->name, info->args_format, info->help_text)) {
        announced_commands_.add(info->name);
    }
}

void MessageReporter::report_message(AcceptedMessage& message, const MapTracker& maps,
                                     wire::DecodedFields& fields, Reporter& reporter) {
    if (message.is_meaning_uncertain) {
        reporter.report_finding_once({.id = record::FindingId::message_version_unknown,
                                      .offset = message.chunk.offset + message.chunk.header_size,
                                      .value = message.head.number,
                                      .name = message.head.spec->name});
    }
    if (message.head.spec != nullptr && message.is_expected) {
        report_known_message(message, maps, fields, reporter);
    } else {
        report_undecoded_message(message, reporter);
        report_unexpected_message(message, reporter);
    }
}

/// Reports the message without a name and fields, because its id may be that of another message.
void MessageReporter::report_undecoded_message(const AcceptedMessage& message,
                                               Reporter& reporter) const {
    const wire::MessageHeader& head = message.head;
    observers_->notify(&Observer::on_message_fields, head.body.size());
    if (emits_records_) {
        record::MessageRecord record = make_message_record(message, reporter);
        record.raw = head.body;
        record.secrecy = secrecy_of(head);
        reporter.emit(record);
    }
}

void MessageReporter::report_unexpected_message(const AcceptedMessage& message,
                                                Reporter& reporter) {
    const wire::Chunk& chunk = message.chunk;
    const wire::MessageHeader& head = message.head;
    if (message.is_in_prelude) {
        return;
    }
    const bool is_known = head.spec != nullptr;
    const record::FindingRecord finding{
        .id = is_known ? record::FindingId::message_unexpected : record::FindingId::message_unknown,
        .offset = chunk.offset + chunk.header_size,
        .value = head.number,
        .name = is_known      ? head.spec->name
                : head.system ? "system"
                              : "game",
        .bytes = chunk.payload.first(std::min<std::size_t>(chunk.payload.size(), 32)),
        .secrecy = secrecy_of(head)};
    const std::size_t slot = head.number * 2U + (head.system ? 1U : 0U);
    if (is_known || head.uuid || slot >= reported_unknown_messages_.size()) {
        reporter.report_finding_once(finding);
    } else if (reported_unknown_messages_.test(slot)) {
        reporter.count_finding(finding.id);
    } else {
        reported_unknown_messages_.set(slot);
        reporter.report_finding(finding);
    }
}

void MessageReporter::report_known_message(AcceptedMessage& message, const MapTracker& maps,
                                           wire::DecodedFields& fields, Reporter& reporter) const {
    const wire::Chunk& chunk = message.chunk;
    const wire::MessageHeader& head = message.head;
    // cl_start_info is always recorded, because it contains the player's name.
    const bool emits_record = emits_records_ || head.spec->id == wire::MessageId::cl_start_info;
    if (!emits_record &&
        (message.snapshot_body ? has_no_trailing_bytes(*message.snapshot_body, head.body)
                               : wire::is_certainly_valid(*head.spec, head.body))) {
        if (!message.is_snapshot_message) {
            observers_->notify(&Observer::on_message_fields, head.body.size());
        }
        return; // the message causes neither a finding nor a record
    }
    wire::decode_fields(
        *head.spec, head.body, fields,
        {.named_by_operator = shown_commands_, .announced_harmless = &announced_commands_});
    const auto odd = find_value_out_of_range(fields);
    if (!head.system) { // system messages are checked where they are used
        message.is_accepted_by_receiver = !fields.error && !odd;
    }
    if (!message.is_snapshot_message) {
        const std::size_t trailing = fields.error ? 0 : fields.trailing.size();
        observers_->notify(&Observer::on_message_fields, head.body.size() - trailing);
    }
    remove_bulk_data(message, maps, fields);
    if (!head.system) {
        hide_misread_console_texts(head, fields);
    }
    if (emits_record) {
        record::MessageRecord record = make_message_record(message, reporter);
        record.name = head.spec->name;
        record.values = fields.values;
        reporter.emit(record);
    }
    const bool flawed = fields.error || !fields.trailing.empty() || odd;
    if (flawed && !message.is_in_prelude) {
        report_message_warnings({.name = head.spec->name,
                                 .bytes = chunk.payload,
                                 .offset = chunk.offset + chunk.header_size,
                                 .header_size = head.header_size,
                                 .secrecy = secrecy_of(head)},
                                fields, odd, reporter);
    }
}

} // namespace tw::inspect
