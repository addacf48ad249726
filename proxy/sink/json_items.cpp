#include "proxy/sink/json_items.h"

#include "proxy/record/item_schema.h"
#include "proxy/record/schema.h"

#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

namespace tw::sink {

using record::SnapshotRecord;
using snapshot::ItemView;
using snapshot::kClientInfoType;
using snapshot::same_ints;
using snapshot::SnapshotView;

namespace {

constexpr std::size_t kMaxIntString = 4 * snapshot::kMaxStringInts;
/// The most bytes of a packed text as a JSON string: two quotes, and six bytes per character.
constexpr std::size_t kMaxIntStringJsonBytes = 6 * kMaxIntString + 2;

using record::kItemFields;
using record::kItemId;
using record::kItemNames;
using record::kItemType;
using record::kItemTypeId;
using record::kItemUuid;

/// Returns the start of an object, such as `,"fields":{`.
template <typename Key>
JsonLiteral object_start(const Key& key) {
    return JsonLiteral{std::string{key.json()} + '{'};
}

const JsonLiteral kIdKey{kItemId.key.json()};
const JsonLiteral kFieldsKey = object_start(kItemFields.key);
const JsonLiteral kNamesKey = object_start(kItemNames.key);

std::string constant_item_start(const snapshot::ObjectSpec& object) {
    const auto quoted = [](std::string_view text) { return '"' + std::string{text} + '"'; };
    std::string front = std::string{kItemType.key.json()} + quoted(object.name);
    front.front() = '{';
    if (const auto uuid = record::type_uuid(object.type, &object, nullptr)) {
        const auto text = snapshot::format_uuid(*uuid);
        front += std::string{kItemUuid.key.json()} + quoted({text.data(), text.size()});
    }
    return front + std::string{kItemTypeId.key.json()};
}

struct IntString {
    std::array<char, kMaxIntString> bytes{};
    std::size_t size = 0;

    explicit IntString(std::span<const std::int32_t> ints) {
        size =
            snapshot::decode_int_string(ints.first(std::min(ints.size(), bytes.size() / 4)), bytes);
    }

    [[nodiscard]] std::string_view view() const { return {bytes.data(), size}; }
};

char* put_int_string(char* to, std::span<const std::int32_t> ints) {
    const IntString text{ints};
    if (needs_no_escape(text.view())) {
        *to++ = '"';
        std::memcpy(to, text.bytes.data(), kMaxIntString);
        to += text.size;
        *to++ = '"';
        return to;
    }
    JsonBuffer escaped; // rarely used, because few names need escapes
    escaped.append_string(text.view());
    std::memcpy(to, escaped.view().data(), escaped.size());
    return to + escaped.size();
}

/// With ItemChoice::changed, one of this many snapshots lists all items, so that a reader can
/// start in the middle of the records.
constexpr std::uint64_t kFullEvery = 250;

/// Returns whether the position of a merged item is unknown (see record::ItemSightings).
bool is_position_unknown(const snapshot::ObjectSpec& object, std::uint32_t missing_ints) {
    using record::ItemSightings;
    return missing_ints != 0 && object.position &&
           (missing_ints & (ItemSightings::int_bit(object.position->x) |
                            ItemSightings::int_bit(object.position->y))) != 0;
}

/// Appends `[type,id]` to a list of such pairs. `packed`: the packed ItemKey.
void append_key(std::uint32_t packed, JsonBuffer& list) {
    const auto key = snapshot::ItemKey::from_packed(packed);
    list.append(list.empty() ? std::string_view{"["} : std::string_view{",["});
    list.append_int(std::int32_t{key.type});
    list.append(',');
    list.append_int(std::int32_t{key.id});
    list.append(']');
}

/// Appends the value of one member of a JSON object that describes a position (the key `at`).
template <typename Value>
void put(const Value& value, JsonBuffer& out) {
    if constexpr (std::is_same_v<Value, record::NumberPair>) {
        char* to = out.reserve(2 * kMaxPutIntBytes + 3);
        *to++ = '[';
        to = put_int(to, value.x);
        *to++ = ',';
        to = put_int(to, value.y);
        *to++ = ']';
        out.set_end(to);
    } else if constexpr (std::is_integral_v<Value>) {
        out.append_int(std::int32_t{value});
    } else {
        out.append_string(value);
    }
}

template <typename Source, typename Schema>
void put_object(const Source& source, const Schema& schema, JsonBuffer& out);

/// Appends the members of an object, each with a comma before it.
template <typename Source, typename Schema>
void put_members(const Source& source, const Schema& schema, JsonBuffer& out) {
    record::for_each_row(schema, [&](const auto& row) {
        using Row = std::remove_cvref_t<decltype(row)>;
        if constexpr (record::kIsInlined<Row>) {
            put_members(*row.get(source), *row.schema, out);
        } else if constexpr (record::kIsObject<Row>) {
            if (const auto* object = row.get(source); object != nullptr) {
                out.append(row.key.json());
                put_object(*object, *row.schema, out);
            }
        } else {
            out.append(row.key.json());
            put(std::invoke(row.get, source), out);
        }
    });
}

template <typename Source, typename Schema>
void put_object(const Source& source, const Schema& schema, JsonBuffer& out) {
    const std::size_t begin = out.size();
    put_members(source, schema, out);
    out.replace(begin, '{'); // replaces the first comma
    out.append('}');
}

/// Writes the start of an item, up to its id, for an item that is not a known object: a UUID
/// descriptor, or an item of an unknown type.
void write_start_of_unknown_item(const SnapshotRecord& record, const ItemView& item,
                                 JsonBuffer& out) {
    const std::size_t begin = out.size();
    out.append(record::kItemType.key.json());
    out.append_string(record::type_name(item.key.type, nullptr));
    out.replace(begin, '{'); // replaces the first comma
    if (const auto uuid = record::type_uuid(item.key.type, nullptr, record.types)) {
        const auto text = snapshot::format_uuid(*uuid);
        out.append(record::kItemUuid.key.json());
        out.append_string({text.data(), text.size()});
    }
    out.append(record::kItemTypeId.key.json());
    out.append_int(std::int32_t{item.key.type});
    out.append(record::kItemId.key.json());
    out.append_int(std::int32_t{item.key.id});
}

} // namespace

void append_packed_string(JsonBuffer& out, std::span<const std::int32_t> ints) {
    out.set_end(put_int_string(out.reserve(kMaxIntStringJsonBytes), ints));
}

ObjectWriter::ObjectWriter(const snapshot::ObjectSpec& object)
    : item_start_{constant_item_start(object)},
      max_bytes_{item_start_.max_put_bytes() + 2 * kMaxPutIntBytes + kIdKey.max_put_bytes() +
                 kFieldsKey.max_put_bytes() + kNamesKey.max_put_bytes()} {
    for (const snapshot::FieldSpec& field : object.fields) {
        const std::string key = '"' + std::string{field.name} + "\":";
        fields_.push_back({.key = JsonLiteral{fields_.empty() ? key : ',' + key},
                           .kind = field.kind,
                           .offset = field.offset,
                           .count = field.count,
                           .bit = record::ItemSightings::int_bit(field.offset)});
        max_bytes_ += fields_.back().key.max_put_bytes() + kMaxIntStringJsonBytes +
                      field.count * kMaxPutIntBytes;
        if (field.names != nullptr) {
            prepare_names(field);
        }
    }
}

void ObjectWriter::prepare_names(const snapshot::FieldSpec& field) {
    const std::string key = ",\"" + std::string{field.name} + "\":";
    const auto& values = field.names->values;
    NamedField names{.offset = field.offset,
                     .when = field.names_when,
                     .bit = record::ItemSightings::int_bit(field.offset)};
    if (field.names->flags) {
        names.key = JsonLiteral{key + '['};
        max_bytes_ += names.key.max_put_bytes();
        for (const snapshot::NamedValue& flag : values) {
            names.flags.push_back({.mask = static_cast<std::uint32_t>(flag.value),
                                   .name = JsonLiteral{",\"" + std::string{flag.name} + '"'}});
            max_bytes_ += names.flags.back().name.max_put_bytes();
        }
    } else {
        std::size_t longest = 0;
        for (const snapshot::NamedValue& each : values) {
            names.values.push_back({.value = each.value,
                                    .text = JsonLiteral{key + '"' + std::string{each.name} + '"'}});
            longest = std::max(longest, names.values.back().text.max_put_bytes());
        }
        // If a value has two names, the first one is used.
        auto& sorted = names.values;
        std::ranges::stable_sort(
            sorted, [](const ValueText& a, const ValueText& b) { return a.value < b.value; });
        sorted.erase(
            std::unique(sorted.begin(), sorted.end(),
                        [](const ValueText& a, const ValueText& b) { return a.value == b.value; }),
            sorted.end());
        max_bytes_ += longest;
    }
    names_.push_back(std::move(names));
}

char* ObjectWriter::put_fields(char* to, std::span<const std::int32_t> data,
                               std::uint32_t missing_ints) const {
    char* const begin = to;
    for (const Field& field : fields_) {
        if (std::size_t{field.offset} + field.count > data.size()) {
            break; // older servers send fewer ints; the other fields are not written
        }
        if ((missing_ints & field.bit) != 0) {
            continue;
        }
        to = field.key.put(to);
        const auto ints = data.subspan(field.offset, field.count);
        if (field.kind == snapshot::FieldKind::int_string) {
            to = put_int_string(to, ints);
        } else if (field.count > 1 || field.kind == snapshot::FieldKind::integers) {
            *to++ = '[';
            for (const std::int32_t value : ints) {
                to = put_int(to, value);
                *to++ = ',';
            }
            to -= ints.empty() ? 0 : 1; // no comma after the last int
            *to++ = ']';
        } else {
            to = put_int(to, ints.front());
        }
    }
    // Removes the comma at the start of the text if the first field was not written.
    if (missing_ints != 0 && to != begin && *begin == ',') {
        std::memmove(begin, begin + 1, static_cast<std::size_t>(to - begin) - 1);
        --to;
    }
    return to;
}

char* ObjectWriter::put_name(char* to, const NamedField& names, std::int32_t value) {
    if (names.key.size() == 0) {
        if (names.values.empty()) {
            return to;
        }
        // Most enums have no gaps, so the index of the value can be computed.
        const auto guess =
            static_cast<std::size_t>(std::int64_t{value} - names.values.front().value);
        if (guess < names.values.size() && names.values[guess].value == value) {
            return names.values[guess].text.put(to);
        }
        const auto found = std::lower_bound(
            names.values.begin(), names.values.end(), value,
            [](const ValueText& name, std::int64_t wanted) { return name.value < wanted; });
        return found != names.values.end() && found->value == value ? found->text.put(to) : to;
    }
    if (value == 0) {
        return to;
    }
    const auto bits = static_cast<std::uint32_t>(value);
    // Each flag's text starts with a comma. The opening bracket then overwrites the first comma.
    char* const first = names.key.put(to);
    to = first - 1;
    for (const Flag& flag : names.flags) {
        if ((bits & flag.mask) == flag.mask && flag.mask != 0) {
            to = flag.name.put(to);
        }
    }
    first[-1] = '[';
    to = std::max(to, first);
    *to++ = ']';
    return to;
}

char* ObjectWriter::put_names(char* to, std::span<const std::int32_t> data,
                              std::uint32_t missing_ints) const {
    char* const begin = to;
    // Each name's text starts with a comma. The first comma overwrites the opening bracket, which
    // is written again at the end.
    to = kNamesKey.put(to);
    char* const first = to;
    for (const NamedField& names : names_) {
        if (names.offset >= data.size()) {
            break;
        }
        if ((missing_ints & names.bit) == 0 &&
            snapshot::names_apply(names.when, names.offset, data)) {
            to = put_name(to == first ? first - 1 : to, names, data[names.offset]);
            if (to == first - 1) {
                to = first;
            }
        }
    }
    if (to == first) {
        return begin;
    }
    first[-1] = '{';
    *to++ = '}';
    return to;
}

void ObjectWriter::write(snapshot::ItemKey key, std::span<const std::int32_t> data,
                         std::uint32_t missing_ints, JsonBuffer& out) const {
    char* to = item_start_.put(out.reserve(max_bytes_));
    to = put_int(to, key.type);
    to = put_int(kIdKey.put(to), key.id);
    to = put_fields(kFieldsKey.put(to), data, missing_ints);
    *to++ = '}';
    out.set_end(put_names(to, data, missing_ints));
}

ItemWriter::ItemWriter(ItemChoice choice, bool raw, const snapshot::ObjectSet& objects)
    : object_set_{&objects}, choice_{choice}, writes_raw_ints_{raw} {
    for (const auto& list : {snapshot::object_table(), objects.custom()}) {
        for (const snapshot::ObjectSpec& object : list) {
            objects_.emplace_back(object);
        }
    }
}

void write_flag_names(const snapshot::NameTable& names, std::int32_t value, JsonBuffer& out) {
    char separator = '[';
    const auto bits = static_cast<std::uint32_t>(value);
    for (const snapshot::NamedValue& flag : names.values) {
        const auto mask = static_cast<std::uint32_t>(flag.value);
        if ((bits & mask) == mask && mask != 0) {
            out.append(separator);
            out.append('"');
            out.append(flag.name);
            out.append('"');
            separator = ',';
        }
    }
    if (separator == '[') {
        out.append('[');
    }
    out.append(']');
}

void ItemWriter::look_up_player(const SnapshotRecord& record, std::uint16_t client,
                                PlayerName& player) const {
    if (record.roster != nullptr) {
        set_name(player, record.roster->name(client));
        return;
    }
    // Servers send all client_infos in a row, so a client's index can usually be computed.
    const auto keys = record.items.keys();
    const std::uint32_t key = snapshot::ItemKey{kClientInfoType, client}.packed();
    std::size_t info = first_client_info_ + client;
    if (info >= keys.size() || keys[info] != key) {
        const auto found = record.items.find({kClientInfoType, client});
        if (!found) {
            player.text = {};
            return;
        }
        info = *found;
    }
    set_name(player, record::player_name_in(record.items[info].data));
}

void ItemWriter::set_name(PlayerName& player, std::optional<record::PackedText> packed) {
    if (!packed) {
        player.text = {};
        return;
    }
    const auto name = packed->ints;
    if (player.text.size() == 0 || !same_ints(name, player.ints)) {
        player.ints = {};
        std::ranges::copy(name, player.ints.begin());
        JsonBuffer text;
        text.append(record::kItemPlayer.key.json());
        append_packed_string(text, name);
        player.text = JsonLiteral{text.view()};
    }
}

void ItemWriter::write_player(const SnapshotRecord& record, std::uint16_t client, JsonBuffer& out) {
    if (client >= player_names_.size()) {
        return;
    }
    PlayerName& player = player_names_[client];
    if (player.checked_at_snapshot != num_snapshots_) {
        look_up_player(record, client, player);
        player.checked_at_snapshot = num_snapshots_;
    }
    out.append(player.text);
}

void ItemWriter::write_location(const map::Location& place, JsonBuffer& out) {
    put_object(place, record::kPlaceSchema, out);
}

bool ItemWriter::CachedItemText::has_ints(std::span<const std::int32_t> ints) const {
    return ints.size() == num_ints &&
           (ints.empty() || std::memcmp(bytes.data(), ints.data(), ints.size_bytes()) == 0);
}

void ItemWriter::CachedItemText::store_text(std::span<const std::int32_t> ints,
                                            std::string_view text) {
    num_ints = ints.size();
    bytes.resize(ints.size_bytes() + text.size());
    if (!ints.empty()) {
        std::memcpy(bytes.data(), ints.data(), ints.size_bytes());
    }
    std::memcpy(bytes.data() + ints.size_bytes(), text.data(), text.size());
}

std::optional<std::uint16_t> ItemWriter::write_object(const snapshot::ObjectSpec& spec,
                                                      const ItemView& item,
                                                      std::uint32_t missing_ints, JsonBuffer& out) {
    // Knuth's multiplicative hash. Its upper bits are distributed best.
    constexpr auto kShift = static_cast<unsigned>(33 - std::bit_width(kCachedItems));
    static_assert(std::has_single_bit(kCachedItems));
    CachedItemText& written = item_texts_[item.key.packed() * 2654435761U >> kShift];
    if (written.spec == &spec && written.key == item.key && written.missing_ints == missing_ints &&
        written.has_ints(item.data)) {
        out.append(written.text());
        return written.client;
    }
    const auto client = snapshot::client_of(spec, item.key, item.data);
    const std::size_t begin = out.size();
    objects_[object_set_->index_of(spec)].write(item.key, item.data, missing_ints, out);
    const std::string_view text = out.view().substr(begin);
    if (text.size() <= kMaxCachedTextBytes) {
        written.spec = &spec;
        written.key = item.key;
        written.missing_ints = missing_ints;
        written.client = client;
        written.store_text(item.data, text);
    }
    return client;
}

void ItemWriter::write_item(const SnapshotRecord& record, const snapshot::ObjectSpec* spec,
                            std::size_t index, JsonBuffer& out) {
    const ItemView item = record.items[index];
    const record::ItemSightings* const sightings = record.sightings;
    if (spec == nullptr) {
        write_start_of_unknown_item(record, item, out);
    } else {
        const std::uint32_t missing_ints =
            sightings == nullptr ? 0 : sightings->missing_ints[index];
        if (const auto client = write_object(*spec, item, missing_ints, out)) {
            write_player(record, *client, out);
        }
        write_id_kind(record::id_kind(record, spec, item), out);
        if (record.tile_map != nullptr && !is_position_unknown(*spec, missing_ints)) {
            if (const auto place = record.tile_map->tiles_at(*spec, item.data)) {
                out.append(record::kItemAt.key.json());
                write_location(*place, out);
            }
        }
    }
    if (sightings != nullptr) {
        write_sessions(*sightings, index, out);
    }
    if (writes_raw_ints_ || spec == nullptr || item.data.size() > spec->size) {
        out.append(record::kItemData.key.json());
        out.append_ints(item.data);
    }
    out.append('}');
}

void ItemWriter::write_id_kind(record::IdKind kind, JsonBuffer& out) {
    if (kind != record::IdKind::server) {
        out.append(record::kItemIdKind.key.json());
        out.append('"');
        out.append(record::id_kind_name(kind));
        out.append('"');
    }
}

/// Appends [session, number, id] for each player who has another client id in a session (`number`)
/// than in the merged snapshot (`id`).
void ItemWriter::write_renumbered_players(const record::ItemSightings& sightings, JsonBuffer& out) {
    out.append(record::kWorldRenumbered.key.json());
    char separator = '[';
    for (const record::RenumberedClient& each : sightings.renumbered) {
        out.append(separator);
        out.append('[');
        out.append_int(static_cast<std::int64_t>(each.session));
        out.append(',');
        out.append_int(std::int32_t{each.number});
        out.append(',');
        out.append_int(std::int32_t{each.id});
        out.append(']');
        separator = ',';
    }
    out.append(sightings.renumbered.empty() ? std::string_view{"[]"} : std::string_view{"]"});
}

/// Appends the list of the sessions that received an item. The texts of lists are cached, because
/// many items of a merged snapshot, and of the next one, have the same list.
void ItemWriter::write_sessions(const record::ItemSightings& sightings, std::size_t index,
                                JsonBuffer& out) {
    // The multiplier of Knuth's multiplicative hash.
    constexpr std::uint64_t kFibonacci = 0x9E3779B97F4A7C15U;
    const auto seen = sightings.session_bits(index);
    std::uint64_t hash = 0;
    for (const std::uint64_t word : seen) {
        hash = (hash ^ word) * kFibonacci;
    }
    static_assert(std::has_single_bit(kCachedSessionsTexts));
    CachedSessionsText& known =
        session_texts_[hash >>
                       (64U - static_cast<unsigned>(std::bit_width(kCachedSessionsTexts) - 1))];
    if (known.generation != seen_generation_ || !std::ranges::equal(known.sessions, seen)) {
        known.generation = seen_generation_;
        known.sessions.assign(seen.begin(), seen.end());
        known.text.clear();
        known.text.append(record::kItemSeenBy.key.json());
        char* const begin =
            known.text.reserve(2 + sightings.sessions.size() * (kMaxPutIntBytes + 1));
        char* to = begin;
        sightings.for_each_session(index, [&to](std::uint32_t session) {
            *to++ = ',';
            to = put_int(to, session);
            return false;
        });
        to += to == begin ? 1 : 0; // an empty list has no comma
        *begin = '[';              // replaces the first comma
        *to++ = ']';
        known.text.set_end(to);
    }
    out.append(known.text.view());
}

void ItemWriter::write_items(const SnapshotRecord& record, bool all_items, JsonBuffer& out) {
    if (choice_ == ItemChoice::none || !record.rebuilt) {
        return;
    }
    const SnapshotView& now = record.items;
    const SnapshotView before = record.previous.value_or(SnapshotView{});
    const bool full = all_items || choice_ == ItemChoice::all || !record.previous ||
                      record.ordinal % kFullEvery == 0;
    if (full) {
        out.append(record::kSnapshotFull.key.json());
        out.append(std::string_view{"true"});
    }
    out.append(record::kSnapshotItems.key.json());
    out.append('[');
    first_client_info_ = now.lower_bound({.type = kClientInfoType, .id = 0});
    ++num_snapshots_;
    if (record.sightings != nullptr &&
        !std::ranges::equal(record.sightings->sessions, seen_sessions_)) {
        seen_sessions_.assign(record.sightings->sessions.begin(), record.sightings->sessions.end());
        ++seen_generation_;
    }
    bool any = false;
    std::size_t old = 0;
    std::optional<std::uint16_t> type; // the type of the previous item; items are sorted by type
    const snapshot::ObjectSpec* spec = nullptr;
    // Goes through both lists of items in the order of keys, and collects the removed items.
    removed_.clear();
    for (std::size_t i = 0; i < now.size(); ++i) {
        const std::uint32_t key = now.keys()[i];
        for (; old < before.size() && before.keys()[old] < key; ++old) {
            append_key(before.keys()[old], removed_);
        }
        const bool known = old < before.size() && before.keys()[old] == key;
        const bool same = !full && known && same_ints(before[old].data, now[i].data);
        old += known ? 1 : 0;
        if (full || !same) {
            if (any) {
                out.append(',');
            }
            any = true;
            const std::uint16_t item_type = snapshot::ItemKey::from_packed(key).type;
            if (type != item_type) {
                type = item_type;
                spec = record.types->object(item_type);
            }
            write_item(record, spec, i, out);
        }
    }
    for (; old < before.size(); ++old) {
        append_key(before.keys()[old], removed_);
    }
    out.append(']');
    out.append(record::kSnapshotRemoved.key.json());
    out.append('[');
    out.append(removed_.view());
    out.append(']');
    if (const auto* const sightings = record.sightings;
        sightings != nullptr &&
        (sightings->has_new_renumbering || (full && !sightings->renumbered.empty()))) {
        write_renumbered_players(*sightings, out);
    }
}

} // namespace tw::sink
