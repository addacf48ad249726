#include "proxy/filter/keys.h"

#include "proxy/base/clock.h"
#include "proxy/record/item_schema.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/message_layouts.h"
#include "proxy/wire/secrets.h"

#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace tw::filter {

using snapshot::FieldKind;
using snapshot::FieldSpec;

using record::MessageRecord;
using wire::FieldValue;

namespace {

constexpr std::string_view kFieldsPrefix = "fields.";
constexpr std::string_view kNamesPrefix = "names.";
constexpr std::string_view kAtPrefix = "at.";

/// A field of messages or items.
struct Field {
    std::string_view name;
    KeyKind kind = KeyKind::any;
    const snapshot::NameTable* names = nullptr; ///< the names of the values; null if none exist
};

void add_fields(std::span<const snapshot::ObjectSpec> objects, std::vector<Field>& fields) {
    for (const snapshot::ObjectSpec& object : objects) {
        for (const FieldSpec& field : object.fields) {
            const KeyKind kind = field.kind == FieldKind::int_string ? KeyKind::text
                                 : field.kind == FieldKind::boolean  ? KeyKind::boolean
                                                                     : KeyKind::number;
            fields.push_back({field.name, kind, field.names});
        }
    }
}

/// Returns the fields of all messages (KeyScope::record) or items. A name may occur several times.
std::vector<Field> fields_of(KeyScope scope, ModTypes described) {
    std::vector<Field> fields;
    if (scope == KeyScope::item) {
        add_fields(snapshot::object_table(), fields);
        add_fields(described.objects, fields);
        return fields;
    }
    const auto add = [&fields](std::span<const wire::MessageField> list) {
        for (const wire::MessageField& field : list) {
            fields.push_back({.name = field.name, .names = field.names});
        }
    };
    for (const auto& messages : {wire::message_table(), described.messages}) {
        for (const wire::MessageSpec& message : messages) {
            add(message.fields);
        }
    }
    for (const wire::Dialect dialect : {wire::Dialect::six, wire::Dialect::seven}) {
        for (const wire::ConnlessSpec& packet : wire::connless_table(dialect)) {
            add(packet.fields);
        }
    }
    add(wire::table::kClient);
    add(wire::table::kSevenClient);
    add(std::array{wire::table::kAddress, wire::table::kPort, wire::table::kSurplus,
                   wire::table::kCloseReason, wire::table::kControlToken});
    add_fields(snapshot::object_table(), fields);
    return fields;
}

/// Returns whether each name of a dotted path exists in at least one message.
bool is_known_path(std::string_view path, const std::vector<Field>& fields) {
    for (bool more = true; more;) {
        const std::size_t dot = path.find('.');
        if (std::ranges::find(fields, path.substr(0, dot), &Field::name) == fields.end()) {
            return false;
        }
        more = dot != std::string_view::npos;
        path.remove_prefix(more ? dot + 1 : 0);
    }
    return true;
}

/// Returns whether a key below `fields` or `names` exists. Sets the key's kind, which is `any` if
/// the kind differs between the objects.
bool find_field(Key& key, ModTypes described) {
    const std::vector<Field> fields = fields_of(key.scope, described);
    const bool named = key.location == Key::Location::names;
    if (key.scope == KeyScope::record && !named) {
        return is_known_path(key.path, fields);
    }
    bool found = false;
    for (const Field& field : fields) {
        if (field.name == key.path && (!named || field.names != nullptr)) {
            const KeyKind kind = named ? KeyKind::text : field.kind;
            key.kind = found && kind != key.kind ? KeyKind::any : kind;
            found = true;
        }
    }
    return found;
}

/// Returns the entry of a key; null if the table has none.
const SchemaKey* find_entry(const SchemaKeys& table, std::string_view name) {
    const auto found = std::ranges::find(table, name, &SchemaKey::name);
    return found == table.end() ? nullptr : &*found;
}

/// Sets the entry and the kind of a key. Returns false if the table has no such entry.
bool set_entry(Key& key, const SchemaKeys& table, std::string_view name) {
    key.entry = find_entry(table, name);
    key.kind = key.entry != nullptr ? key.entry->kind : key.kind;
    return key.entry != nullptr;
}

/// Sets the location, kind and entries of a record's key. Returns false if no record type has the
/// key.
bool find_record_key(Key& key) {
    if (set_entry(key, header_keys(), key.name)) {
        key.location = Key::Location::header;
        key.entries_by_record_type.fill(key.entry);
        return true;
    }
    bool found = false;
    for (std::size_t type = 0; type < key.entries_by_record_type.size(); ++type) {
        const SchemaKey* const entry = find_entry(record_keys()[type], key.name);
        key.entries_by_record_type[type] = entry;
        if (entry != nullptr) {
            key.kind = found && key.kind != entry->kind ? KeyKind::any : entry->kind;
            found = true;
        }
    }
    return found;
}

bool find_item_key(Key& key) {
    const bool is_data = key.name == record::kItemData.key.name();
    if (is_data || key.name == record::kItemSeenBy.key.name()) {
        key.location = is_data ? Key::Location::data : Key::Location::seen_by;
        key.kind = KeyKind::number;
        return true;
    }
    return set_entry(key, item_keys(), key.name);
}

/// Returns the edit distance of two words. Two swapped neighbouring letters count as one change.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> earlier(b.size() + 1);
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::swap(earlier, before);
        std::swap(before, row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = before[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
            row[j] = std::min({changed, before[j] + 1, row[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], earlier[j - 2] + 1);
            }
        }
    }
    return row[b.size()];
}

/// Passes the names of an int's value to the visitor: the names of all set flags, or the name of
/// the enum value.
bool visit_names(const snapshot::NameTable& names, std::int32_t value, ValueVisitor& visitor) {
    if (!names.flags) {
        const auto name = names.find(value);
        return name && visitor.receive_value(Value::of(*name));
    }
    const auto bits = static_cast<std::uint32_t>(value);
    for (const snapshot::NamedValue& flag : names.values) {
        const auto mask = static_cast<std::uint32_t>(flag.value);
        if (mask != 0 && (bits & mask) == mask && visitor.receive_value(Value::of(flag.name))) {
            return true;
        }
    }
    return false;
}

/// Finds a key of a record or of an item.
std::optional<Key> find_record_or_item_key(KeyScope scope, std::string_view name,
                                           ModTypes described) {
    static constexpr std::array<std::pair<std::string_view, Key::Location>, 3> kPrefixes{
        {{kFieldsPrefix, Key::Location::fields},
         {kNamesPrefix, Key::Location::names},
         {kAtPrefix, Key::Location::place}}};
    Key key;
    key.name = name;
    key.scope = scope;
    for (const auto& [prefix, way] : kPrefixes) {
        if (name.starts_with(prefix)) {
            key.location = way;
            key.path = name.substr(prefix.size());
        }
    }
    const bool found = key.location == Key::Location::place
                           ? set_entry(key, tile_position_keys(), key.path)
                       : key.location != Key::Location::top_level ? find_field(key, described)
                       : scope == KeyScope::record                ? find_record_key(key)
                                                                  : find_item_key(key);
    return found ? std::optional{std::move(key)} : std::nullopt;
}

/// Finds a key of a row. If the item and its record have a key of the same name, such as `type`,
/// returns the item's key.
std::optional<Key> find_row_key(std::string_view name, ModTypes described) {
    const bool of_item = name.starts_with(kItemsPrefix);
    name.remove_prefix(of_item ? kItemsPrefix.size() : 0);
    if (name == kRemovedRowKey) {
        Key key;
        key.name = name;
        key.scope = KeyScope::item;
        key.location = Key::Location::removed;
        key.kind = KeyKind::boolean;
        return key;
    }
    auto key = find_record_or_item_key(KeyScope::item, name, described);
    return key || of_item ? key : find_record_or_item_key(KeyScope::record, name, described);
}

/// An existing key, and how similar it is to an unknown name.
struct KeyGuess {
    static constexpr std::size_t kEndsWithName = 1;

    std::string key{};
    /// 0 if a key has exactly this name, kEndsWithName if the key ends in a dot and the name;
    /// otherwise kEndsWithName plus the edit distance. The lowest rank is the best.
    std::size_t rank = SIZE_MAX;
};

KeyGuess guess_key(KeyScope scope, std::string_view name, ModTypes described) {
    if (find_key(scope, name, described)) {
        return {.key = std::string{name}, .rank = 0};
    }
    const std::vector<std::string> keys = all_keys(scope, described);
    const std::string ending = "." + std::string{name};
    const std::string* shortest = nullptr;
    for (const std::string& key : keys) {
        if (key.ends_with(ending) && (shortest == nullptr || key.size() < shortest->size())) {
            shortest = &key;
        }
    }
    if (shortest != nullptr) {
        return {.key = *shortest, .rank = KeyGuess::kEndsWithName};
    }
    const std::vector<std::string_view> views{keys.begin(), keys.end()};
    const std::string_view near = most_similar_word(name, views);
    return near.empty() ? KeyGuess{}
                        : KeyGuess{.key = std::string{near},
                                   .rank = KeyGuess::kEndsWithName + edit_distance(name, near)};
}

/// Returns a secret value as the JSON writes it: the secret part of the text is redacted.
Value redacted_value(const FieldValue& value, FormatBuffer& buffer) {
    const std::string_view shown =
        value.kind == FieldValue::Kind::string ? wire::unredacted_part(value) : std::string_view{};
    const std::size_t room = buffer.text.size() - wire::kRedacted.size();
    auto* const end = std::ranges::copy(shown.substr(0, room), buffer.text.data()).out;
    std::ranges::copy(wire::kRedacted, end);
    return Value::of(std::string_view{buffer.text.data(),
                                      std::min(shown.size(), room) + wire::kRedacted.size()});
}

Value value_of(const FieldValue& value, ReadContext reading) {
    if (value.secrecy == wire::Secrecy::secret && !reading.show_secrets &&
        (value.kind == FieldValue::Kind::string || value.kind == FieldValue::Kind::raw)) {
        return redacted_value(value, reading.buffer);
    }
    switch (value.kind) {
    case FieldValue::Kind::boolean:
        return Value::of(value.integer != 0);
    case FieldValue::Kind::string:
        return Value::of(wire::as_text(value.bytes));
    case FieldValue::Kind::raw:
        return hex_value(value.bytes, reading.buffer);
    case FieldValue::Kind::uuid: {
        snapshot::Uuid uuid{};
        std::memcpy(uuid.data(), value.bytes.data(), std::min(uuid.size(), value.bytes.size()));
        return uuid_value(uuid, reading.buffer);
    }
    default:
        return Value::of(value.integer);
    }
}

/// Returns the rest of a dotted path after its first name; nullopt if the first name is not `name`.
std::optional<std::string_view> rest_of_path(std::optional<std::string_view> path,
                                             std::string_view name) {
    if (!path || path->substr(0, path->find('.')) != name) {
        return std::nullopt;
    }
    return path->substr(std::min(path->size(), name.size() + 1));
}

/// Passes the values at a dotted path to the visitor. Reads `values`, a flat list, up to the end of
/// the current object or array. The elements of an array have no names; their path is the path of
/// the array.
// NOLINTNEXTLINE(misc-no-recursion): messages have at most three levels
bool visit_fields(std::span<const FieldValue>& values, std::optional<std::string_view> path,
                  ReadContext reading, ValueVisitor& visitor) {
    while (!values.empty()) {
        const FieldValue& value = values.front();
        values = values.subspan(1);
        if (value.kind == FieldValue::Kind::end) {
            return false;
        }
        const auto rest = value.name.empty() ? path : rest_of_path(path, value.name);
        const bool is_nested = value.kind == FieldValue::Kind::array_begin ||
                               value.kind == FieldValue::Kind::object_begin;
        if (is_nested ? visit_fields(values, rest, reading, visitor)
                      : rest == "" && visitor.receive_value(value_of(value, reading))) {
            return true;
        }
    }
    return false;
}

/// Passes the values at a dotted path below a message's `names` to the visitor. Searches nested
/// objects, but not arrays, because the JSON has no names for the values in arrays.
bool visit_field_names(std::string_view path, const MessageRecord& record, ValueVisitor& visitor) {
    std::size_t depth = 0;
    std::optional<std::size_t> array;
    for (const FieldValue& value : record.values) {
        if (value.kind == FieldValue::Kind::end) {
            --depth;
            array = array == depth ? std::nullopt : array;
        } else if (value.kind == FieldValue::Kind::array_begin ||
                   value.kind == FieldValue::Kind::object_begin) {
            if (value.kind == FieldValue::Kind::array_begin && !array) {
                array = depth;
            }
            ++depth;
        } else if (!array && value.name == path && value.names != nullptr &&
                   value.kind == FieldValue::Kind::integer &&
                   visit_names(*value.names, static_cast<std::int32_t>(value.integer), visitor)) {
            return true;
        }
    }
    return false;
}

bool visit_ints(std::span<const std::int32_t> ints, ValueVisitor& visitor) {
    return std::ranges::any_of(ints, [&](std::int32_t value) {
        return visitor.receive_value(Value::of(std::int64_t{value}));
    });
}

} // namespace

Value hex_value(std::span<const std::byte> bytes, FormatBuffer& buffer) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    const std::size_t count = std::min(bytes.size(), FormatBuffer::kMaxHexBytes);
    for (std::size_t i = 0; i < count; ++i) {
        const auto byte = std::to_integer<std::size_t>(bytes[i]);
        buffer.text[2 * i] = kDigits[byte / 16];
        buffer.text[2 * i + 1] = kDigits[byte % 16];
    }
    return Value::of(std::string_view{buffer.text.data(), 2 * count});
}

Value uuid_value(const snapshot::Uuid& uuid, FormatBuffer& buffer) {
    const auto text = snapshot::format_uuid(uuid);
    std::ranges::copy(text, buffer.text.begin());
    return Value::of(std::string_view{buffer.text.data(), text.size()});
}

Value time_value(record::Timestamp time, FormatBuffer& buffer) {
    const record::SecondAndNanosecond parts = record::split_time(time);
    std::tm utc{};
    const std::time_t moment{parts.second};
    ::gmtime_r(&moment, &utc);
    const std::size_t size =
        std::strftime(buffer.text.data(), buffer.text.size(), base::kRecordTimeFormat, &utc);
    const int fraction = std::snprintf(buffer.text.data() + size, buffer.text.size() - size,
                                       ".%06dZ", static_cast<int>(parts.nanosecond / 1000));
    return Value::of(
        std::string_view{buffer.text.data(), size + static_cast<std::size_t>(fraction)});
}

Value int_string_value(std::span<const std::int32_t> ints, FormatBuffer& buffer) {
    const auto fitting = ints.first(std::min(ints.size(), snapshot::kMaxStringInts));
    return Value::of(
        std::string_view{buffer.text.data(), snapshot::decode_int_string(fitting, buffer.text)});
}

std::optional<Key> find_key(KeyScope scope, std::string_view name, ModTypes described) {
    return scope == KeyScope::item_row ? find_row_key(name, described)
                                       : find_record_or_item_key(scope, name, described);
}

std::vector<std::string> all_keys(KeyScope scope, ModTypes described) {
    std::vector<std::string> names;
    const auto add = [&](std::string_view prefix, std::string_view name) {
        names.push_back(std::string{prefix} + std::string{name});
    };
    const auto add_fields_of = [&](KeyScope each) {
        for (const Field& field : fields_of(each, described)) {
            add(kFieldsPrefix, field.name);
            if (field.names != nullptr) {
                add(kNamesPrefix, field.name);
            }
        }
    };
    const auto add_entries = [&](std::string_view prefix, const SchemaKeys& keys) {
        for (const SchemaKey& key : keys) {
            add(prefix, key.name);
        }
    };
    add_entries(kAtPrefix, tile_position_keys());
    if (scope != KeyScope::item) {
        add_entries({}, header_keys());
        for (const SchemaKeys& keys : record_keys()) {
            add_entries({}, keys);
        }
        add_fields_of(KeyScope::record);
    }
    if (scope == KeyScope::item_row) {
        names.emplace_back(kRemovedRowKey);
    }
    if (scope != KeyScope::record) {
        names.emplace_back(record::kItemData.key.name());
        names.emplace_back(record::kItemSeenBy.key.name());
        add_entries({}, item_keys());
        add_fields_of(KeyScope::item);
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

std::string_view most_similar_word(std::string_view word, std::span<const std::string_view> words) {
    constexpr std::size_t kMaxLength = 64; // longer words resemble no existing word
    constexpr std::size_t kMinPrefix = 3;  // shorter words are the start of too many words
    std::string_view best;
    std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string_view each : words) {
        // The edit distance is at least the difference in length.
        const std::size_t longer = std::max(word.size(), each.size());
        if (word.size() > kMaxLength || each.empty() ||
            longer - std::min(word.size(), each.size()) >= least) {
            continue;
        }
        if (const std::size_t changes = edit_distance(word, each);
            changes < least && changes < each.size()) {
            least = changes;
            best = each;
        }
    }
    if (best.empty() && word.size() >= kMinPrefix) {
        const auto begun = std::ranges::find_if(
            words, [word](std::string_view each) { return each.starts_with(word); });
        return begun == words.end() ? best : *begun;
    }
    return best;
}

namespace {

/// Returns whether a key is that of an int without a name, such as items.fields.int_8.
bool is_unnamed_int(std::string_view key) {
    constexpr std::string_view kPrefix = "fields.int_";
    const std::size_t at = key.rfind(kPrefix);
    return at != std::string_view::npos && at + kPrefix.size() < key.size() &&
           key.find_first_not_of("0123456789", at + kPrefix.size()) == std::string_view::npos;
}

} // namespace

std::string suggest_key(KeyScope scope, std::string_view name, ModTypes described) {
    if (is_unnamed_int(name)) {
        return {}; // no other key has the value of an unnamed int
    }
    const bool prefixed = name.starts_with(kItemsPrefix);
    name.remove_prefix(prefixed ? kItemsPrefix.size() : 0);
    KeyGuess best = guess_key(scope, name, described);
    bool of_item = scope == KeyScope::item_row && prefixed &&
                   find_key(KeyScope::item, best.key, described).has_value();
    if (scope == KeyScope::record) {
        KeyGuess item = guess_key(KeyScope::item, name, described);
        const bool wins_tie = prefixed || item.rank == KeyGuess::kEndsWithName;
        if (item.rank < best.rank || (item.rank == best.rank && wins_tie)) {
            best = std::move(item);
            of_item = true;
        }
    }
    return best.key.empty() || !of_item ? best.key : std::string{kItemsPrefix} + best.key;
}

std::vector<std::string_view> possible_words(const Key& key, ModTypes described) {
    std::vector<std::string_view> words;
    if (key.location == Key::Location::place) {
        return possible_tile_names(key.path);
    }
    if (key.location == Key::Location::names) {
        for (const Field& field : fields_of(key.scope, described)) {
            if (field.name == key.path && field.names != nullptr) {
                for (const snapshot::NamedValue& value : field.names->values) {
                    words.push_back(value.name);
                }
            }
        }
    } else if (key.name == "item.type" || (key.scope == KeyScope::item && key.name == "type")) {
        return item_type_names(described);
    } else {
        for (const SchemaKey* const entry : key.entries_by_record_type) {
            if (entry != nullptr && !entry->words.empty()) {
                return entry->words;
            }
        }
    }
    return words;
}

std::vector<std::string_view> item_type_names(ModTypes described) {
    std::vector<std::string_view> words{"descriptor"};
    for (const auto& table : {snapshot::object_table(), described.objects}) {
        for (const snapshot::ObjectSpec& object : table) {
            words.push_back(object.name);
        }
    }
    return words;
}

std::vector<std::string_view> message_names(ModTypes described) {
    std::vector<std::string_view> names;
    for (const auto& table : {wire::message_table(), described.messages}) {
        for (const wire::MessageSpec& message : table) {
            names.push_back(message.name);
        }
    }
    return names;
}

bool visit_record(const Key& key, const record::Record& record, ReadContext reading,
                  ValueVisitor& visitor) {
    OptionalValue found;
    if (key.location == Key::Location::header) {
        const auto* const head = std::visit([](const auto* each) { return &each->head; }, record);
        const record::TypedHeader header{head, record.index()};
        found = key.entry->read(&header, reading);
    } else if (key.location == Key::Location::top_level) {
        if (const SchemaKey* const entry = key.entries_by_record_type[record.index()]) {
            found = entry->read(std::visit([](const void* each) { return each; }, record), reading);
        }
    } else if (key.location == Key::Location::place) {
        const auto* const* finding = std::get_if<const record::FindingRecord*>(&record);
        if (finding != nullptr && (*finding)->place) {
            found = key.entry->read(&*(*finding)->place, reading);
        }
    } else if (const auto* const* message = std::get_if<const MessageRecord*>(&record)) {
        if ((*message)->name.empty()) {
            return false; // unknown messages have no fields
        }
        std::span<const FieldValue> values = (*message)->values;
        return key.location == Key::Location::names
                   ? visit_field_names(key.path, **message, visitor)
                   : visit_fields(values, key.path, reading, visitor);
    }
    return found && visitor.receive_value(*found);
}

FilteredItem::FilteredItem(const record::SnapshotRecord& record, std::size_t index)
    : record_item_{&record, record.items[index], nullptr}, index_{index} {
    const std::uint16_t type = record_item_.item.key.type;
    record_item_.object = record.types != nullptr
                              ? record.types->object(type)
                              : snapshot::find_object(type, snapshot::Dialect::six);
}

const std::optional<map::Location>& FilteredItem::map_location() {
    if (!is_location_computed_ && record_item_.record->tile_map != nullptr &&
        record_item_.object != nullptr) {
        location_ = record_item_.record->tile_map->tiles_at(*record_item_.object, data());
    }
    is_location_computed_ = true;
    return location_;
}

const FieldSpec* FilteredItem::find_field(std::string_view name) const {
    const auto fields =
        record_item_.object == nullptr ? std::span<const FieldSpec>{} : record_item_.object->fields;
    for (const FieldSpec& field : fields) {
        if (std::size_t{field.offset} + field.count > data().size()) {
            return nullptr;
        }
        if (field.name == name) {
            const record::ItemSightings* const sightings = record_item_.record->sightings;
            const std::uint32_t missing =
                sightings == nullptr ? 0 : sightings->missing_ints[index_];
            return (missing & record::ItemSightings::int_bit(field.offset)) == 0 ? &field : nullptr;
        }
    }
    return nullptr;
}

bool FilteredItem::visit_sessions(ValueVisitor& visitor) const {
    bool enough = false;
    if (const record::ItemSightings* sightings = record_item_.record->sightings) {
        sightings->for_each_session(index_, [&](std::uint32_t session) {
            enough = visitor.receive_value(Value::of(std::int64_t{session}));
            return enough;
        });
    }
    return enough;
}

bool visit_item(const Key& key, FilteredItem& item, ReadContext reading, ValueVisitor& visitor) {
    OptionalValue found;
    const bool is_field =
        key.location == Key::Location::fields || key.location == Key::Location::names;
    const FieldSpec* const field = is_field ? item.find_field(key.path) : nullptr;
    switch (key.location) {
    case Key::Location::top_level:
        found = key.entry->read(&item.record_item(), reading);
        break;
    case Key::Location::place:
        found =
            item.map_location() ? key.entry->read(&*item.map_location(), reading) : std::nullopt;
        break;
    case Key::Location::fields:
        if (field != nullptr && field->kind == snapshot::FieldKind::int_string) {
            found =
                int_string_value(item.data().subspan(field->offset, field->count), reading.buffer);
            break;
        }
        return field != nullptr &&
               visit_ints(item.data().subspan(field->offset, field->count), visitor);
    case Key::Location::names:
        return field != nullptr && field->names != nullptr &&
               snapshot::names_apply(field->names_when, field->offset, item.data()) &&
               visit_names(*field->names, item.data()[field->offset], visitor);
    case Key::Location::data:
        return visit_ints(item.data(), visitor);
    case Key::Location::seen_by:
        return item.visit_sessions(visitor);
    case Key::Location::header:
    case Key::Location::removed: // only lines of recordings have the key `removed`
        break;
    }
    return found && visitor.receive_value(*found);
}

} // namespace tw::filter
