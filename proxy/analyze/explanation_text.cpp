#include "proxy/analyze/explanation.h"
#include "proxy/record/findings.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"

#include <fmt/format.h>

namespace tw::analyze {

namespace json = boost::json;
using record::escape_for_terminal, record::list_of, record::number_of, record::object_of,
    record::text_of, record::value_or_null;

namespace {

/// Returns a value of any type as text; empty if the value is missing.
std::string value_text(const json::object* record, std::string_view key) {
    const json::value* value = record == nullptr ? nullptr : record->if_contains(key);
    return value == nullptr ? std::string{} : escape_for_terminal(json::serialize(*value));
}

std::string safe_text(const json::object& object, std::string_view key) {
    return escape_for_terminal(text_of(object, key));
}

/// Returns the type of a finding's item, as name or number.
std::string type_of(const json::object* item) {
    const std::string type = item == nullptr ? "" : safe_text(*item, "type");
    return type.empty() ? "type " + value_text(item, "type_id") : type;
}

/// Returns an item's type and id, such as "character 3".
std::string item_name(const json::object* item) {
    return fmt::format("{} {}", type_of(item), value_text(item, "id"));
}

/// Returns the text wrapped to the page's width and indented.
std::string wrap_text(std::string_view text) {
    constexpr std::size_t kWidth = 96;
    std::string out;
    while (!text.empty()) {
        std::size_t size = text.size();
        if (size > kWidth) {
            const std::size_t space = text.rfind(' ', kWidth);
            size = space == std::string_view::npos || space == 0 ? kWidth : space;
        }
        out += fmt::format("  {}\n", text.substr(0, size));
        text.remove_prefix(std::min(text.size(), size + (size < text.size() ? 1 : 0)));
    }
    return out;
}

/// The meaning of a number in a finding. The first row with the number's key and the finding's id
/// applies; an empty id matches any finding.
struct NumberLabel {
    std::string_view key;
    std::string_view id;
    std::string_view text;
    std::string_view unit{};
};

constexpr auto kNumberLabels = std::to_array<NumberLabel>({
    {"crc_wanted", "", "the server's checksum"},
    {"crc_got", "", "the checksum here"},
    {"value", "snapshot.budget", "in use"},
    {"value", "snapshot.client_stalled", "nothing new to show for", " ms"},
    {"value", "snapshot.size_differs", "the server's size", " int[s]"},
    {"value", "snapshot.crc_mismatch", "difference (here − server)"},
    {"value", "", "value"},
    {"limit", "snapshot.size_differs", "expected size", " int[s]"},
    {"limit", "", "limit"},
    {"since_tick", "snapshot.size_differs", "first read at tick"},
    {"since_tick", "", "since tick"},
    {"lost", "snapshot.budget", "items that are gone"},
    {"lost", "snapshot.client_stalled", "unusable snapshots in between"},
    {"lost", "", "snapshots lost so far"},
    {"ddnet_code", "", "DDNet's clients print error"},
});

std::string numbers_text(const json::object& finding) {
    std::string text;
    for (std::string_view last_key; const NumberLabel& label : kNumberLabels) {
        if (label.key == last_key || (!label.id.empty() && label.id != text_of(finding, "id"))) {
            continue;
        }
        last_key = label.key;
        if (const std::string value = value_text(&finding, label.key); !value.empty()) {
            const std::string unit = record::choose_plural(value == "1" ? 1 : 2, label.unit);
            text += fmt::format("  {}: {}{}\n", label.text, value, unit);
        }
    }
    return text;
}

/// Returns a candidate as text: "character 3 x: 5004 instead of 1004".
std::string candidate_text(const json::object& candidate, const json::object& item) {
    std::string text = item_name(&item);
    if (const auto field = safe_text(candidate, "field"); !field.empty()) {
        text += ' ' + field;
    }
    if (candidate.contains("expected")) {
        text += fmt::format(": {} instead of {}", value_text(&candidate, "value"),
                            value_text(&candidate, "expected"));
    }
    return text;
}

std::string candidates_text(const json::object& finding) {
    const json::array* const list = likeliest_candidates(finding);
    if (list == nullptr) {
        return {};
    }
    std::vector<std::string> lines;
    for (const json::value& value : *list) {
        const json::object* const each = value.if_object();
        if (const json::object* const item = object_of(each, "item"); item != nullptr) {
            lines.push_back(candidate_text(*each, *item));
        }
    }
    const auto count = number_of(*object_of(finding, "candidates"), "count").value_or(0);
    if (count == 1 && lines.size() == 1) {
        // snapshot.explained contains only the likely candidates, so there may be further ones.
        return fmt::format("  the only {}: {}\n",
                           text_of(finding, "id") == "snapshot.explained" ? "likely value"
                           : list->front().get_object().contains("field") ? "value that fits"
                                                                          : "item",
                           lines.front());
    }
    const bool all = count <= static_cast<std::int64_t>(lines.size());
    std::string text = fmt::format("  candidates: {}, the likeliest {}\n", count,
                                   all ? std::string{"first"} : std::to_string(lines.size()));
    for (const std::string& line : lines) {
        text += fmt::format("    {}\n", line);
    }
    return text;
}

/// Returns the verb of the text "5004 VERB 1004", in which 5004 is the received value and 1004 the
/// expected value.
std::string_view comparison_verb(const Explanation& story) {
    return text_of(story.explaining_finding, "name") == "exact" ? "must have been"
           : story.is_suspect_uncertain()                       ? "a guess:"
                                                                : "was likely";
}

/// Returns a sentence that says whether the client accepted the finding's snapshot. A client
/// acknowledges only snapshots with the right checksum.
/// Source: DDNet CClient::ProcessServerPacket.
std::string acceptance_text(const Explanation& story) {
    if (story.rejected_ticks.empty()) {
        return {};
    }
    if (!story.acknowledged_tick) {
        return wrap_text(story.has_acknowledgements
                             ? "The client did not acknowledge it."
                             : "No later input of the client was seen: whether it accepted the "
                               "snapshot is not known.");
    }
    const bool same = story.acknowledged_tick == number_of(story.finding, "tick");
    const std::string reason =
        story.causing_sizes.size() == 1
            ? fmt::format(
                  "it knows {} with {}", story.causing_sizes.front().object,
                  record::count_with_noun(story.causing_sizes.front().actual_ints, "int[s]"))
        : !story.causing_sizes.empty() ? "it knows these objects with the server's sizes"
        : text_of(story.finding, "id") == "snapshot.unknown_base" && !story.base_error
            ? "it had the base, which is missing here"
            : "it received something else than is recorded here, or it uses other object sizes "
              "than twscope did (a mod's own client: describe them in an objects file)";
    const bool drops_elsewhere = !story.causing_sizes.empty() && !is_objects_file_wrong(story);
    return wrap_text(fmt::format(
        "The client acknowledged {}, so its game went on: {}, or it is a bot that does not verify "
        "snapshots.{}",
        same ? std::string{"this snapshot"}
             : fmt::format("a later snapshot that was rejected here, {}, but not this one",
                           *story.acknowledged_tick),
        reason, drops_elsewhere ? " The game of all other clients freezes." : ""));
}

/// Returns a line that names the finding's item; empty if the finding names no item, or is a
/// snapshot.crc_mismatch.
std::string item_line(const json::object& finding) {
    const json::object* const item = object_of(finding, "item");
    const std::string_view id = text_of(finding, "id");
    if (item == nullptr || id == "snapshot.crc_mismatch") {
        return {};
    }
    if (id == "snapshot.size_differs") {
        return fmt::format("  {0} (seen in {0} {1})\n", type_of(item), value_text(item, "id"));
    }
    const bool is_misread = id == "snapshot.size_out_of_range" && text_of(*item, "type").empty();
    return is_misread ? fmt::format("  misread as {} (not the real type)\n", type_of(item))
                      : fmt::format("  the item: {}\n", item_name(item));
}

std::string reason_text(const Explanation& story) {
    const json::object& finding = story.finding;
    const std::string_view name = text_of(finding, "name");
    std::string text = wrap_text(safe_text(finding, "what"));
    // If the finding's name only repeats the id, `detail` only repeats `what`.
    if (name.empty() || !record::finding_display_name(text_of(finding, "id"), name).empty()) {
        text += wrap_text(safe_text(finding, "detail"));
    }
    text += item_line(finding) + numbers_text(finding) + acceptance_text(story);
    const json::object& explained = story.explaining_finding;
    if (explained.empty()) {
        return text + candidates_text(finding);
    }
    std::string compared = "Compared with the next verified snapshots: ";
    const json::object* const item = object_of(explained, "item");
    if (item != nullptr) {
        compared += fmt::format("{} {} gave {} where it {} {} ({})", item_name(item),
                                safe_text(explained, "field"), value_text(&explained, "value"),
                                comparison_verb(story), value_text(&explained, "expected"),
                                safe_text(explained, "name"));
    }
    if (const auto detail = safe_text(explained, "detail"); !detail.empty()) {
        compared += (item == nullptr ? "" : "; ") + detail;
    }
    const json::object* const candidates = object_of(explained, "candidates");
    const bool is_named =
        item != nullptr && candidates != nullptr && number_of(*candidates, "count") == 1;
    return text + wrap_text(compared) + (is_named ? "" : candidates_text(explained));
}

std::string tile_text(const json::object* item) {
    const json::object* at = object_of(item, "at");
    return at == nullptr
               ? std::string{}
               : fmt::format("tile {} {}", value_text(at, "tile"), value_text(at, "game"));
}

/// Returns an int of an item's raw data as text; empty if the record does not contain it.
std::string int_text(const json::object* item, std::int64_t index) {
    const json::array* const data = item == nullptr ? nullptr : list_of(*item, "data");
    const auto at = static_cast<std::size_t>(index);
    return data == nullptr || at >= data->size()
               ? std::string{}
               : escape_for_terminal(json::serialize((*data)[at]));
}

/// Returns the table of the item's fields before and after the finding; empty if the records do not
/// contain the item's fields.
std::string fields_table(const Explanation& story) {
    const json::object* const before = story.find_suspect_item(story.items_before);
    const json::object* const after = story.find_suspect_item(story.items_after);
    const auto tick = [](const std::optional<std::int64_t>& number) {
        return number ? fmt::format("tick {}", *number) : std::string{};
    };
    const auto line = [](std::string_view name, std::string_view old_value,
                         std::string_view new_value, std::string_view remark) {
        return fmt::format("  {:<20} {:>14} {:>14}{}\n", name, old_value, new_value, remark);
    };
    std::string text;
    const json::object* const suspect = story.suspect();
    const json::object* const old_fields = object_of(before, "fields");
    const json::object* const new_fields = object_of(after, "fields");
    const json::object* const fields = old_fields != nullptr ? old_fields : new_fields;
    for (std::size_t i = 0; fields != nullptr && i < fields->size(); ++i) {
        const auto key = (fields->begin() + i)->key();
        const std::string_view name{key.data(), key.size()};
        std::string remark;
        if (text_of(*suspect, "field") == name) {
            remark = suspect->contains("expected")
                         ? fmt::format("  <- rejected: {}, {} {}", value_text(suspect, "value"),
                                       comparison_verb(story), value_text(suspect, "expected"))
                         : "  <- wrong in the rejected snapshot";
        }
        text += line(escape_for_terminal(name), value_text(old_fields, name),
                     value_text(new_fields, name), remark);
    }
    // Records have no names for the ints beyond the agreed size.
    const bool is_resized = text_of(story.finding, "id") == "snapshot.size_differs";
    for (auto i = is_resized ? number_of(story.finding, "limit") : std::nullopt; i; ++*i) {
        const std::string old_value = int_text(before, *i);
        const std::string new_value = int_text(after, *i);
        if (old_value.empty() && new_value.empty()) {
            break;
        }
        text += line(fmt::format("int_{}", *i), old_value, new_value, "");
    }
    const std::string from = tile_text(before);
    const std::string to = tile_text(after);
    if (!from.empty() || !to.empty()) {
        text += line("where", from, to, "");
    }
    return text.empty() ? text
                        : line("", tick(story.before_tick), tick(story.after_tick), "") + text;
}

std::string item_text(const Explanation& story) {
    const json::object* const named = story.suspect_item();
    if (named == nullptr) {
        return {};
    }
    const bool is_guess = story.is_suspect_uncertain();
    const json::object* const before = story.find_suspect_item(story.items_before);
    const json::object* const any =
        before != nullptr ? before : story.find_suspect_item(story.items_after);
    if (any == nullptr && !is_guess) {
        return {};
    }
    std::string text = fmt::format(
        "\nThe item{}: {}", is_guess ? ", if the likeliest candidate is the one (a guess)" : "",
        item_name(any == nullptr ? named : any));
    if (any == nullptr) {
        return text + "\n  neither in the snapshot before nor in the one after\n";
    }
    const std::string player = safe_text(*any, "player");
    const std::string table = fields_table(story);
    if (table.empty() && player.empty() && !item_line(story.finding).empty()) {
        return {}; // reason_text() has named the item, and nothing more is known about it
    }
    return text + (player.empty() ? "" : ", player " + player) + '\n' + table;
}

std::string datagrams_text(const Explanation& story) {
    std::string text;
    for (const SnapshotDatagram& each : story.datagrams) {
        const bool is_whole = each.num_parts == 1;
        text += "Datagram";
        text +=
            is_whole ? "" : fmt::format(" of part {} of 0 to {}", each.part, each.num_parts - 1);
        text += ": ";
        if (each.frame != 0) {
            text += fmt::format("frame {} of {}, ", each.frame, escape_for_terminal(each.file));
        }
        text += fmt::format("{}, {} bytes of payload", clock_text(each.time), each.bytes);
        text += each.is_compressed ? ", compressed" : "";
        if (each.part_bytes != 0) {
            text += "; ";
            text += each.is_compressed ? fmt::format("decompressed, after the header of {} bytes, ",
                                                     each.header_bytes)
                                       : "";
            text +=
                fmt::format("{} begins at byte {}",
                            is_whole ? "the delta" : "this part of the delta", each.part_offset);
        }
        text += '\n';
    }
    return text;
}

/// The bytes around a finding, and the index of the byte that the finding is about.
struct FindingBytes {
    const json::object* record = nullptr; ///< the finding that contains the bytes
    std::string_view hex;
    std::optional<std::size_t> mark{};
    std::int64_t part = 0;

    [[nodiscard]] std::size_t size() const { return hex.size() / 2; }
};

FindingBytes bytes_of_finding(const Explanation& story) {
    const json::object& explained = story.explaining_finding;
    const bool is_explained = explained.contains("offset");
    FindingBytes bytes{.record = is_explained ? &explained : &story.finding, .hex = {}};
    bytes.hex = text_of(*bytes.record, "hex");
    if (bytes.hex.starts_with('[')) {
        bytes.hex = {}; // a redacted recording has a text in brackets instead of the bytes
    }
    bytes.part = number_of(*bytes.record, "part").value_or(0);
    const auto offset = number_of(*bytes.record, "offset");
    // If a second finding explains this one, only the explaining finding's offset is exact enough.
    if ((is_explained || explained.empty()) && offset && *offset >= 0 &&
        static_cast<std::uint64_t>(*offset) < bytes.size()) {
        bytes.mark = static_cast<std::size_t>(*offset);
    }
    return bytes;
}

/// Returns the datagram that contained the bytes; null if the bytes are not part of a delta, or if
/// the datagram is unknown.
const SnapshotDatagram* datagram_of(const Explanation& story, const FindingBytes& bytes) {
    const auto& datagrams = story.datagrams;
    const auto found = std::ranges::find(datagrams, bytes.part, &SnapshotDatagram::part);
    return bytes.record->contains("part") && found != datagrams.end() ? &*found : nullptr;
}

std::string hex_row(const FindingBytes& bytes, std::size_t begin, std::size_t end) {
    std::string text = fmt::format("  {:04x} ", begin);
    for (std::size_t at = begin; at < end; ++at) {
        text += at == bytes.mark ? '[' : at != begin && at - 1 == bytes.mark ? ']' : ' ';
        text += escape_for_terminal(bytes.hex.substr(2 * at, 2));
    }
    return text + (bytes.mark && *bytes.mark + 1 == end ? "]\n" : "\n");
}

std::string bytes_text(const Explanation& story) {
    constexpr std::size_t kRow = 16;
    constexpr std::size_t kRowsAround = 2;
    const FindingBytes bytes = bytes_of_finding(story);
    if (bytes.size() == 0) {
        return {};
    }
    const std::size_t row_of_mark = bytes.mark.value_or(0) / kRow;
    const std::size_t first = row_of_mark < kRowsAround ? 0 : row_of_mark - kRowsAround;
    const std::size_t end = std::min(bytes.size(), (row_of_mark + kRowsAround + 1) * kRow);
    std::string text = "\nThe bytes";
    if (bytes.record->contains("part")) {
        text += fmt::format(" of part {} of the delta", bytes.part);
    }
    if (bytes.mark) {
        text += fmt::format(", byte {} marked", *bytes.mark);
        text += story.is_suspect_uncertain() && story.suspect_item() != nullptr ? " (a guess)" : "";
        if (const auto* const datagram = datagram_of(story, bytes); datagram != nullptr) {
            text += fmt::format(": byte {} of the {}", datagram->part_offset + *bytes.mark,
                                datagram->is_compressed ? "decompressed payload after the header"
                                                        : "payload");
        }
    }
    text += '\n';
    for (std::size_t begin = first * kRow; begin < end; begin += kRow) {
        text += hex_row(bytes, begin, std::min(end, begin + kRow));
    }
    const std::size_t left = bytes.size() - (end - first * kRow);
    return left == 0 ? text
                     : text + fmt::format("  … {}; the JSON has all in hex\n",
                                          record::count_with_noun(left, "more byte[s]"));
}

/// Returns an object's name as in the server's code: "GameInfo" for "game_info".
std::string name_in_code(std::string_view object) {
    std::string name;
    bool is_start = true;
    for (const char letter : object) {
        if (letter != '_') {
            name += is_start && letter >= 'a' && letter <= 'z'
                        ? static_cast<char>(letter - 'a' + 'A')
                        : letter;
        }
        is_start = letter == '_';
    }
    return name;
}

/// Returns advice where to look for the cause; empty if no advice exists.
std::string advice_text(const Explanation& story) {
    if (story.base_error) {
        return fmt::format("The snapshot's base was rejected: see {} at tick {}.",
                           story.base_error->id, *story.base_error->tick);
    }
    if (is_objects_file_wrong(story)) {
        return {};
    }
    if (!story.causing_sizes.empty()) {
        std::vector<std::string> names;
        for (const SizeDifference& each : story.causing_sizes) {
            names.push_back(name_in_code(each.object));
        }
        return fmt::format("grep -rnE 'CNet(Obj|Event)_({})' src/ finds what fills the object, "
                           "usually a Snap() function. datasrc/network.py defines its fields.",
                           fmt::join(names, "|"));
    }
    const json::object* const suspect = story.suspect();
    const std::string_view field = suspect == nullptr || story.is_suspect_uncertain()
                                       ? std::string_view{}
                                       : text_of(*suspect, "field");
    if (const json::object* const item = story.suspect_item(); item != nullptr && !field.empty()) {
        return fmt::format("Search the server's code for what writes {} of {} after the snapshot "
                           "is built. If nothing does, the value was damaged on its way.",
                           escape_for_terminal(field), type_of(item));
    }
    const json::object& finding = story.finding;
    return std::string{find_cause_hint(text_of(finding, "id"), text_of(finding, "name"))};
}

/// Returns the command line or page address that explains a finding. Returns the finding's session
/// and tick if `select` is null.
std::string selection_text(const SelectionFormatter& select, std::int64_t session,
                           std::int64_t tick) {
    return select ? select(session, tick) : fmt::format("session {}, tick {}", session, tick);
}

/// Returns the other warnings and errors about snapshots, by kind.
std::string also_reported_text(const Explanation& story, const SelectionFormatter& select) {
    std::string text;
    for (const Explanation::FindingTally& kind : story.finding_kinds) {
        const bool is_this = kind.id == text_of(story.finding, "id") &&
                             (kind.type.empty() || kind.type == type_of(story.suspect_item()));
        if (!kind.is_info && !is_this) {
            text += fmt::format("  {}{}: {}\n", escape_for_terminal(kind.id),
                                kind.type.empty() ? "" : " of " + escape_for_terminal(kind.type),
                                selection_text(select, kind.session, kind.tick));
        }
    }
    return text.empty() ? text : "\nAlso reported (the first of each kind)\n" + text;
}

std::string choices_text(const Explanation& story) {
    std::string text = "Others are:\n";
    for (const Explanation::ExplainableFinding& choice : story.explainable_findings) {
        text += fmt::format("  session {}{}: {}\n", choice.session,
                            choice.tick ? fmt::format(", tick {}", *choice.tick) : "", choice.id);
    }
    const std::uint64_t more = story.num_explainable_findings - story.explainable_findings.size();
    return more == 0 ? text : text + fmt::format("  and {} more\n", more);
}

/// Returns how to explain findings with the severity info, which are explained only on request.
std::string informational_text(const Explanation& story, const SelectionFormatter& select) {
    const auto first =
        std::ranges::find_if(story.finding_kinds, &Explanation::FindingTally::is_info);
    return first == story.finding_kinds.end()
               ? std::string{}
               : fmt::format("Findings of severity info exist; {} explains the first ({}).\n",
                             selection_text(select, first->session, first->tick),
                             escape_for_terminal(first->id));
}

json::value text_or_null(std::string_view text) {
    // NOLINTNEXTLINE(modernize-return-braced-init-list): in braces it is an array
    return text.empty() ? json::value{} : json::value(json::string_view{text.data(), text.size()});
}

json::array datagrams_json(const Explanation& story) {
    const FindingBytes bytes = bytes_of_finding(story);
    const SnapshotDatagram* const marked = bytes.mark ? datagram_of(story, bytes) : nullptr;
    json::array list;
    for (const SnapshotDatagram& each : story.datagrams) {
        json::object datagram{{"tick", each.tick},
                              {"file", each.file},
                              {"frame", each.frame == 0 ? json::value{} : json::value(each.frame)},
                              {"time_ns", each.time},
                              {"bytes", each.bytes},
                              {"header_bytes", each.header_bytes},
                              {"compressed", each.is_compressed},
                              {"part", each.part},
                              {"parts", each.num_parts},
                              {"delta_begin", each.part_offset},
                              {"delta_bytes", each.part_bytes}};
        if (&each == marked) {
            datagram["marked"] = each.part_offset + *bytes.mark;
        }
        list.push_back(std::move(datagram));
    }
    return list;
}

json::array finding_kinds_json(const Explanation& story) {
    json::array list;
    for (const Explanation::FindingTally& kind : story.finding_kinds) {
        list.push_back(json::object{{"id", kind.id},
                                    {"info", kind.is_info},
                                    {"count", kind.count},
                                    {"session", kind.session},
                                    {"tick", kind.tick}});
    }
    return list;
}

json::array sizes_json(const Explanation& story) {
    json::array list;
    for (const SizeDifference& each : story.causing_sizes) {
        list.push_back(json::object{{"object", each.object},
                                    {"type_id", each.type_id},
                                    {"agreed", each.agreed_ints},
                                    {"ints", each.actual_ints},
                                    {"snapshots", each.snapshots}});
    }
    return list;
}

json::object choices_json(const Explanation& story) {
    json::array choices;
    for (const Explanation::ExplainableFinding& each : story.explainable_findings) {
        choices.push_back(json::object{
            {"session", each.session}, {"tick", value_or_null(each.tick)}, {"id", each.id}});
    }
    return {{"finding", nullptr},
            {"others", std::move(choices)},
            {"num_others", story.num_explainable_findings},
            {"kinds", finding_kinds_json(story)},
            {"sessions", story.num_sessions}};
}

} // namespace

std::string clock_text(std::int64_t time) {
    constexpr std::int64_t kMicrosecond = 1000;
    constexpr std::int64_t kSecond = 1'000'000;
    const std::int64_t micros = time / kMicrosecond;
    const std::int64_t seconds = micros / kSecond;
    return fmt::format("{:02}:{:02}:{:02}.{:06}", seconds / 3600 % 24, seconds / 60 % 60,
                       seconds % 60, micros % kSecond);
}

std::string explainable_findings_text(const Explanation& explanation,
                                      const SelectionFormatter& select,
                                      std::string_view list_command) {
    const FindingSelection& wanted = explanation.selection;
    std::string asked;
    if (wanted.session) {
        asked += fmt::format(" of session {}", *wanted.session);
    }
    if (wanted.tick) {
        asked += fmt::format(" at tick {}", *wanted.tick);
    }
    const std::string information = informational_text(explanation, select);
    std::string text =
        fmt::format("Nothing to explain: no {} about snapshots{}",
                    wanted.tick || information.empty() ? "finding" : "warning or error", asked);
    if (!explanation.explainable_findings.empty()) {
        return text + ".\n" + choices_text(explanation);
    }
    text += " in " + record::count_with_noun(explanation.num_sessions, "session[s]");
    text += ".\n" + information;
    if (explanation.num_other_findings != 0) {
        text += fmt::format("Findings that are not about snapshots exist{}\n",
                            list_command.empty() ? "."
                                                 : fmt::format("; to list them: {}", list_command));
    }
    return text;
}

std::string explanation_text(const Explanation& explanation, const SelectionFormatter& select) {
    std::string text = size_cause_text(explanation) + safe_text(explanation.finding, "id") + '\n' +
                       explanation.title;
    if (const std::string tick = value_text(&explanation.finding, "tick"); !tick.empty()) {
        text += fmt::format(", tick {}", tick);
    }
    text +=
        '\n' + first_snapshot_text(explanation) + datagrams_text(explanation) + "\nWhat happened\n";
    for (const std::string& event : explanation.events) {
        text += fmt::format("  {}\n", event);
    }
    text += "\nWhy it is reported\n" + reason_text(explanation) + item_text(explanation) +
            bytes_text(explanation);
    const bool is_certain =
        !explanation.causing_sizes.empty(); // then the usual cause would mislead users
    if (const auto cause = explanation.usual_cause(); !cause.empty() && !is_certain) {
        text += "\nUsual cause\n" + wrap_text(cause);
    }
    const auto where = advice_text(explanation);
    if (!where.empty()) {
        text += "\nWhere to look\n" + wrap_text(where);
    }
    if (is_certain) {
        text += "\nWhat to change\n" + wrap_text(size_change_text(explanation));
    }
    return text + also_reported_text(explanation, select);
}

json::object explanation_json(const Explanation& explanation) {
    if (!explanation.has_finding()) {
        return choices_json(explanation);
    }
    const auto side = [](std::optional<std::int64_t> tick, const json::object* item) {
        return json::object{{"tick", value_or_null(tick)}, {"item", value_or_null(item)}};
    };
    const json::object* const explained =
        explanation.explaining_finding.empty() ? nullptr : &explanation.explaining_finding;
    return {{"finding", explanation.finding},
            {"explained", value_or_null(explained)},
            {"about", explanation.title},
            {"before", side(explanation.before_tick,
                            explanation.find_suspect_item(explanation.items_before))},
            {"after",
             side(explanation.after_tick, explanation.find_suspect_item(explanation.items_after))},
            {"events", json::array(explanation.events.begin(), explanation.events.end())},
            {"sizes", sizes_json(explanation)},
            {"cause", text_or_null(explanation.usual_cause())},
            {"look", text_or_null(advice_text(explanation))},
            {"acknowledged", value_or_null(explanation.acknowledged_tick)},
            {"datagrams", datagrams_json(explanation)},
            {"kinds", finding_kinds_json(explanation)}};
}

std::string explain_finding_in_lines(std::string_view lines, std::int64_t session,
                                     std::int64_t tick) {
    ExplanationReader reader{{.session = session, .tick = tick}};
    while (!lines.empty()) {
        const std::size_t size = std::min(lines.find('\n'), lines.size() - 1) + 1;
        reader.on_line(lines.substr(0, size));
        lines.remove_prefix(size);
    }
    const Explanation& story = reader.explanation();
    return story.has_finding() ? explanation_text(story) : explainable_findings_text(story);
}

} // namespace tw::analyze
