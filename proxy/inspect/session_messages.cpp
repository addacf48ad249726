// From the chunks of a session to records of its messages.

#include "proxy/inspect/session.h"

#include <algorithm>

namespace tw::inspect {

using wire::MessageId;

namespace {

/// Whether a message may carry a password, a command or a code. What cannot be decoded as a whole
/// cannot be told apart any closer.
wire::Secrecy secrecy_of(const wire::MessageSpec& spec) {
    const bool secret =
        spec.id == MessageId::cl_say || spec.id == MessageId::sv_chat ||
        std::any_of(spec.fields.begin(), spec.fields.end(), [](const wire::MessageField& field) {
            return field.secrecy == wire::Secrecy::secret;
        });
    return secret ? wire::Secrecy::secret : wire::Secrecy::open;
}

} // namespace

wire::VitalClass Session::on_chunk(const wire::Chunk& chunk, Workspace& workspace) {
    record::DirectionStats& stats = reporter_.direction_stats();
    ++stats.chunks;
    if (chunk.resend) {
        ++stats.resent;
    }
    if (chunk.vital) {
        VitalOrder& order = connection_.order(direction());
        const bool waiting = order.waiting();
        const wire::VitalClass taken = order.take(chunk.sequence, chunk.resend);
        switch (taken) {
        case wire::VitalClass::next:
            ++stats.vital;
            if (chunk.resend) {
                ++stats.recovered;
            } else if (waiting) {
                ++stats.reordered;
            }
            break;
        case wire::VitalClass::old:
            ++stats.duplicates;
            return taken;
        case wire::VitalClass::gap:
            ++stats.gaps;
            reporter_.finding({.id = record::FindingId::chunk_vital_gap,
                               .offset = chunk.offset,
                               .value = chunk.sequence});
            return taken;
        }
    }
    on_content(chunk, workspace);
    return wire::VitalClass::next;
}

void Session::on_content(const wire::Chunk& chunk, Workspace& workspace) {
    if (chunk.payload.empty()) {
        reporter_.finding_once({.id = record::FindingId::chunk_empty, .offset = chunk.offset});
        return;
    }
    ++reporter_.direction_stats().messages;
    const auto head = wire::decode_message_head(chunk.payload);
    if (!head) {
        if (prelude_) {
            return; // the damaged prelude of DDNet 14.0 to 16.7, told as such
        }
        reporter_.finding(
            {.id = record::FindingId::message_id_invalid,
             .offset = chunk.offset + head.error().offset,
             .bytes = chunk.payload.first(std::min<std::size_t>(chunk.payload.size(), 32)),
             .secrecy = wire::Secrecy::secret}); // it may be a login with one bit flipped
        return;
    }
    on_message(chunk, *head, workspace);
}

void Session::on_message(const wire::Chunk& chunk, const wire::MessageHead& head,
                         Workspace& workspace) {
    if (head.spec == nullptr) {
        report_unknown(chunk, head);
        return;
    }
    // The message first, then what follows from it.
    if (options_.messages || !wire::is_snapshot(head.spec->id)) {
        report_fields(chunk, head, workspace);
    }
    if (!prelude_) {
        act_on(chunk, head, workspace);
    }
}

void Session::report_unknown(const wire::Chunk& chunk, const wire::MessageHead& head) {
    if (options_.messages) {
        reporter_.emit(record::MessageRecord{.head = reporter_.head(),
                                             .system = head.system,
                                             .vital = chunk.vital,
                                             .sequence = chunk.sequence,
                                             .size = chunk.payload.size(),
                                             .number = head.number,
                                             .uuid = head.uuid,
                                             .raw = head.body});
    }
    if (prelude_) {
        return;
    }
    const record::FindingRecord finding{
        .id = record::FindingId::message_unknown,
        .offset = chunk.offset + chunk.header_size,
        .value = head.number,
        .name = head.system ? "system" : "game",
        .bytes = chunk.payload.first(std::min<std::size_t>(chunk.payload.size(), 32))};
    const std::size_t slot = head.number * 2U + (head.system ? 1U : 0U);
    if (head.uuid || slot >= unknown_told_.size()) {
        reporter_.finding_once(finding);
    } else if (unknown_told_.test(slot)) {
        reporter_.count(finding.id);
    } else {
        unknown_told_.set(slot);
        reporter_.finding(finding);
    }
}

void Session::leave_out_bulk(MessageId id, wire::DecodedFields& fields) const {
    const bool map_data = id == MessageId::map_data;
    if ((!wire::is_snapshot(id) && !map_data) || fields.error || fields.values.empty() ||
        fields.values.back().kind != wire::FieldValue::Kind::raw) {
        return;
    }
    const std::size_t size = fields.values.back().bytes.size();
    fields.values.pop_back();
    if (!map_data) {
        return; // the snapshot record shows what is in it
    }
    // last, crc, chunk, size: only the last chunk is shorter than the others.
    const bool last = fields.values.front().integer != 0;
    const auto offset = last ? download_.announced_size() - static_cast<std::int64_t>(size)
                             : fields.values[2].integer * static_cast<std::int64_t>(size);
    if (offset >= 0) {
        fields.values.push_back({.name = "offset", .integer = offset});
    }
}

void Session::report_fields(const wire::Chunk& chunk, const wire::MessageHead& head,
                            Workspace& workspace) {
    wire::DecodedFields& fields = workspace.fields;
    wire::decode_fields(*head.spec, head.body, fields);
    leave_out_bulk(head.spec->id, fields);
    if (options_.messages) {
        reporter_.emit(record::MessageRecord{.head = reporter_.head(),
                                             .name = head.spec->name,
                                             .system = head.system,
                                             .vital = chunk.vital,
                                             .sequence = chunk.sequence,
                                             .size = chunk.payload.size(),
                                             .number = head.number,
                                             .uuid = head.uuid,
                                             .values = fields.values});
    }
    if (prelude_ || head.system != head.spec->system) {
        return; // receivers ignore a known UUID of the other kind
    }
    const std::size_t body = chunk.offset + chunk.header_size + head.head_size;
    if (fields.error) {
        reporter_.finding(
            {.id = record::FindingId::message_truncated,
             .offset = body + fields.error->offset,
             .name = head.spec->name,
             .detail = snapshot::error_info(fields.error->code).sentence,
             .bytes = chunk.payload.first(std::min<std::size_t>(chunk.payload.size(), 64)),
             .secrecy = secrecy_of(*head.spec)});
        return;
    }
    if (!fields.trailing.empty()) {
        reporter_.finding_once({.id = record::FindingId::message_trailing_bytes,
                                .offset = body + head.body.size() - fields.trailing.size(),
                                .name = head.spec->name,
                                .bytes = fields.trailing,
                                .secrecy = secrecy_of(*head.spec)});
    }
    const auto odd = std::find_if(fields.values.begin(), fields.values.end(),
                                  [](const wire::FieldValue& value) { return value.out_of_range; });
    if (odd != fields.values.end()) {
        reporter_.finding_once({.id = record::FindingId::message_out_of_range,
                                .offset = body + odd->offset,
                                .value = odd->integer,
                                .name = head.spec->name,
                                .detail = odd->name});
    }
}

} // namespace tw::inspect
