#include "proxy/analyze/datagram_listing.h"

#include "proxy/analyze/explanation.h"
#include "proxy/record/terminal_text.h"
#include "proxy/wire/secrets.h"
#include "snapshot/delta.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::analyze {

using record::ByteGroup;
using record::BytePart;

namespace {

/// The maximum number of bytes, and of an item's ints, in a row of the text.
constexpr std::size_t kMaxBytesInRow = 8;
constexpr std::size_t kMaxIntsInRow = 12;

/// Returns whether a message may contain a secret: a field is marked as secret, or the fields are
/// unknown or malformed.
bool may_be_secret(const wire::MessageHeader* head) {
    if (head == nullptr || head->spec == nullptr) {
        return true;
    }
    wire::DecodedFields fields;
    wire::decode_fields(*head->spec, head->body, fields);
    return fields.error || std::ranges::any_of(fields.values, [](const wire::FieldValue& value) {
               return value.secrecy == wire::Secrecy::secret;
           });
}

constexpr std::array<std::string_view, 3> kContainerNames{"datagram", "payload", "delta"};

std::string base_text(const wire::SnapshotBody& body) {
    const std::int64_t base = std::int64_t{body.tick} - body.distance;
    return base == snapshot::kNoBase ? "full snapshot" : fmt::format("base tick {}", base);
}

} // namespace

std::string DatagramListing::use_text(const ByteRun& run) {
    std::string group{record::byte_group_name(run.group)};
    std::ranges::replace(group, '_', ' ');
    const std::string_view part = record::byte_part_name(run.part);
    return fmt::format("{}{}{}{}{}", group, run.name.empty() ? "" : " ", run.name,
                       part.empty() ? "" : " ", part);
}

void DatagramListing::on_line(std::string_view line) {
    if (is_reading()) {
        records_.emplace_back(line);
    }
}

void DatagramListing::on_datagram(const record::RecordHeader& head,
                                  std::span<const std::byte> datagram) {
    if (state_ != ReadState::waiting || !is_selected_(head.time)) {
        return;
    }
    flush_();
    state_ = ReadState::reading;
    head_ = head;
    datagram_ = datagram;
    datagram_size_ = datagram.size();
    attribution_.on_datagram(head, datagram);
}

void DatagramListing::on_packet(const wire::Packet& packet) {
    if (!is_reading()) {
        return;
    }
    payload_ = packet.payload;
    payload_size_ = packet.payload.size();
    is_compressed_ = packet.compressed;
    attribution_.on_packet(packet);
    if (packet.kind != wire::PacketKind::connless) {
        set_value(Container::datagram, 0,
                  fmt::format("acknowledges {}{}{}{}", packet.ack,
                              packet.kind == wire::PacketKind::chunks
                                  ? ", " + record::count_with_noun(packet.num_chunks, "chunk[s]")
                                  : "",
                              packet.compressed ? ", compressed" : "",
                              packet.resend ? ", requests a resend" : ""));
    }
}

void DatagramListing::on_control(const wire::Control& control) {
    if (is_reading()) {
        attribution_.on_control(control);
    }
}

void DatagramListing::on_accepted_payload(const inspect::AcceptedPayload& payload) {
    if (is_reading()) {
        attribution_.on_accepted_payload(payload);
    }
}

void DatagramListing::on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                               const wire::MessageHeader* head) {
    if (!is_reading()) {
        return;
    }
    has_secret_chunk_ = may_be_secret(head);
    is_snapshot_ = false;
    attribution_.on_chunk(chunk, taken, head); // also ends the previous message
    has_secret_fields_ = has_secret_chunk_;
    if (chunk.vital) {
        set_value(Container::payload, chunk.offset,
                  fmt::format("sequence {}{}", chunk.sequence, chunk.resend ? ", resent" : ""));
    }
}

void DatagramListing::on_message_fields(std::size_t bytes) {
    if (is_reading()) {
        attribution_.on_message_fields(bytes);
    }
}

void DatagramListing::on_snap_message(const inspect::ObservedSnapMessage& part) {
    if (!is_reading()) {
        return;
    }
    is_snapshot_ = true;
    const wire::SnapshotBody& body = part.body;
    const auto offset = static_cast<std::size_t>(body.data.data() - payload_.data());
    attribution_.on_snap_message(part);
    set_value(Container::payload, offset - body.data_offset,
              fmt::format("tick {}, {}, part {} of {}, checksum {}", body.tick, base_text(body),
                          std::int64_t{body.part} + 1, body.num_parts, body.crc));
    if (part.outcome == inspect::SnapMessageOutcome::complete) {
        add_run({.offset = offset,
                 .group = ByteGroup::delta,
                 .count = {.count = 1, .bytes = body.data.size(), .bits = 0}});
        runs_.back().value =
            body.num_parts == 1 ? "(its bytes follow)"
                                : fmt::format("(the bytes of all {} parts follow)", body.num_parts);
    }
}

void DatagramListing::on_delta(const inspect::ObservedDelta& delta) {
    if (!is_reading()) {
        return;
    }
    delta_ = delta.delta.body;
    std::size_t at = runs_.size();
    attribution_.on_delta(delta);
    if (delta.outcome != inspect::DeltaOutcome::accepted) {
        return;
    }
    const snapshot::Delta& decoded = *delta.decoded_delta;
    runs_[at++].value =
        fmt::format("{} deleted, {} updated (ints of items in the base: differences)",
                    decoded.deleted.size(), decoded.updates.size());
    for (const std::int32_t packed : decoded.deleted) {
        runs_[at++].value = fmt::format(
            "id {}", snapshot::ItemKey::from_packed(static_cast<std::uint32_t>(packed)).id);
    }
    for (const snapshot::DeltaUpdate& update : decoded.updates) {
        const auto ints = std::span{decoded.ints}.subspan(update.begin, update.size);
        runs_[at++].value = fmt::format("id {}", update.key.id);
        runs_[at++].value =
            fmt::format("{}{}", fmt::join(ints.first(std::min(ints.size(), kMaxIntsInRow)), " "),
                        ints.size() > kMaxIntsInRow ? " ..." : "");
    }
}

void DatagramListing::on_datagram_end() {
    if (is_reading()) {
        state_ = ReadState::after_chunks;
        is_snapshot_ = false;
        attribution_.on_datagram_end();
        flush_();
        state_ = ReadState::complete;
    }
}

bool DatagramListing::is_secret(const inspect::AttributedBytes& bytes) const {
    if (bytes.container != Container::payload) {
        return bytes.container == Container::datagram && bytes.group == ByteGroup::unused;
    }
    switch (bytes.group) {
    case ByteGroup::message:
        return bytes.part == BytePart::whole ? has_secret_chunk_
                                             : bytes.part != BytePart::head && has_secret_fields_;
    case ByteGroup::duplicate:
    case ByteGroup::behind_gap:
        return has_secret_chunk_;
    case ByteGroup::unused:
        return !is_snapshot_; // the chunks of a rejected packet
    case ByteGroup::chunk:
        return state_ == ReadState::after_chunks; // no chunk, but bytes after the last one
    default:
        return false;
    }
}

void DatagramListing::add_run(const inspect::AttributedBytes& bytes) {
    const auto whole = bytes.container == Container::datagram  ? datagram_
                       : bytes.container == Container::payload ? payload_
                                                               : delta_;
    ByteRun& run = runs_.emplace_back(ByteRun{.container = bytes.container,
                                              .offset = bytes.offset,
                                              .group = bytes.group,
                                              .part = bytes.part,
                                              .name = std::string{bytes.name},
                                              .size = bytes.count.bytes,
                                              .bits = bytes.count.bits,
                                              .hex = {}});
    if (is_secret(bytes)) {
        run.hex = wire::kRedacted;
        return;
    }
    for (const std::byte byte : whole.subspan(bytes.offset, bytes.count.bytes)) {
        run.hex += fmt::format("{:02x}", byte);
    }
}

void DatagramListing::set_value(Container container, std::size_t offset, std::string value) {
    const auto found = std::find_if(runs_.rbegin(), runs_.rend(), [&](const ByteRun& run) {
        return run.container == container && run.offset == offset;
    });
    if (found != runs_.rend()) {
        found->value = std::move(value);
    }
}

std::string DatagramListing::row_text(const ByteRun& run) const {
    std::string bytes;
    if (run.hex == wire::kRedacted) {
        bytes = run.hex;
    } else {
        for (std::size_t i = 0; i < std::min(run.hex.size(), 2 * kMaxBytesInRow); i += 2) {
            bytes += run.hex.substr(i, 2) + ' ';
        }
        bytes += run.hex.size() > 2 * kMaxBytesInRow ? "..." : "";
    }
    const std::string bits = run.bits == 0 ? "" : std::to_string(run.bits);
    return fmt::format("{:>6} {:>5}{}  {:<28}{}{}{}{}\n", run.offset, run.size,
                       is_compressed_ ? fmt::format(" {:>5}", bits) : "", bytes,
                       run.container == Container::delta ? "  " : "", use_text(run),
                       run.value.empty() ? "" : ": ", run.value);
}

std::string DatagramListing::text(std::string_view title) const {
    std::string text = fmt::format(
        "Datagram: {}, {}, {}, session {}, {}\n", title, clock_text(head_.time),
        head_.direction == wire::Direction::s2c ? "server to client" : "client to server",
        head_.session, record::count_with_noun(datagram_size_, "byte[s]"));
    const auto add_section = [&](std::string_view name, bool is_payload) {
        text += fmt::format("\n{}\n{:>6} {:>5}{}  {:<28}use\n", name, "offset", "size",
                            is_compressed_ ? "  bits" : "", "bytes");
        for (const ByteRun& run : runs_) {
            if ((run.container != Container::datagram) == is_payload && run.size + run.bits != 0) {
                text += row_text(run);
            }
        }
    };
    add_section("Header", false);
    if (payload_size_ != 0) {
        add_section(fmt::format("Payload, {}{}", record::count_with_noun(payload_size_, "byte[s]"),
                                is_compressed_ ? " after decompression (bits: before)" : ""),
                    true);
    }
    text += records_.empty() ? "" : "\nRecords\n";
    for (const std::string& record : records_) {
        text += record + '\n';
    }
    return text;
}

boost::json::object DatagramListing::json() const {
    namespace json = boost::json;
    json::array rows;
    for (const ByteRun& run : runs_) {
        if (run.size + run.bits == 0) {
            continue;
        }
        json::object row{{"in", kContainerNames[static_cast<std::size_t>(run.container)]},
                         {"offset", run.offset},
                         {"bytes", run.size},
                         {"bits", run.bits},
                         {"use", use_text(run)},
                         {"hex", run.hex}};
        if (!run.value.empty()) {
            row.emplace("value", run.value);
        }
        rows.push_back(std::move(row));
    }
    json::array records;
    for (const std::string& record : records_) {
        records.push_back(json::parse(record));
    }
    return {{"session", head_.session},
            {"dir", head_.direction == wire::Direction::s2c ? "s2c" : "c2s"},
            {"bytes", datagram_size_},
            {"rows", std::move(rows)},
            {"records", std::move(records)}};
}

} // namespace tw::analyze
