#include "proxy/filter/keys.h"

#include "proxy/wire/connless.h"
#include "proxy/wire/message_layouts.h"
#include "proxy/wire/secrets.h"

#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::filter {

using snapshot::FieldKind;
using snapshot::FieldSpec;
using snapshot::ObjectSpec;

namespace {

constexpr std::string_view kFields = "fields.";
constexpr std::string_view kNames = "names.";
constexpr std::string_view kAt = "at.";

template <typename Use>
void for_each_field(DescribedTypes more, const Use& use) {
    for (const auto& table : {snapshot::object_table(), more.objects}) {
        for (const ObjectSpec& object : table) {
            for (const FieldSpec& field : object.fields) {
                use(field);
            }
        }
    }
}

KeyKind kind_of(const FieldSpec& field) {
    if (field.kind == FieldKind::int_string) {
        return KeyKind::text;
    }
    return field.kind == FieldKind::boolean ? KeyKind::boolean : KeyKind::number;
}

bool has_word(std::span<const std::string_view> words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
}

/// Returns whether each name of a dotted path exists in at least one message.
bool path_exists(std::string_view path, DescribedTypes more) {
    const std::vector<std::string_view> words = message_field_names(more);
    while (true) {
        const std::size_t dot = path.find('.');
        if (!has_word(words, path.substr(0, dot))) {
            return false;
        }
        if (dot == std::string_view::npos) {
            return true;
        }
        path.remove_prefix(dot + 1);
    }
}

/// Returns whether at least one object has the key's field. Sets the key's kind to the field's
/// type, or to `any` if the type differs between the objects.
bool find_item_field(Key& key, DescribedTypes more) {
    bool found = false;
    for_each_field(more, [&](const FieldSpec& field) {
        if (field.name != key.path || (key.way == Key::Location::names && field.names == nullptr)) {
            return;
        }
        const KeyKind kind = key.way == Key::Location::names ? KeyKind::text : kind_of(field);
        key.kind = found && kind != key.kind ? KeyKind::any : kind;
        found = true;
    });
    return found;
}

bool find_path(Key& key, DescribedTypes more) {
    if (key.scope == KeyScope::item) {
        return find_item_field(key, more);
    }
    if (key.way == Key::Location::names) {
        key.kind = KeyKind::text;
        return !message_value_names(key.path, more).empty();
    }
    return path_exists(key.path, more);
}

bool find_table_row(Key& key) {
    if (key.scope == KeyScope::record) {
        return resolve_record_key(key);
    }
    if (key.name == record::kItemData.key.name()) {
        key.way = Key::Location::data;
        key.kind = KeyKind::number;
        return true;
    }
    if (key.name == record::kItemSeenBy.key.name()) {
        key.way = Key::Location::seen_by;
        key.kind = KeyKind::number;
        return true;
    }
    key.of_item = find_row(item_keys(), key.name);
    key.kind = key.of_item != nullptr ? key.of_item->kind : key.kind;
    return key.of_item != nullptr;
}

bool find_place(Key& key) {
    key.of_place = find_row(place_keys(), key.path);
    key.kind = key.of_place != nullptr ? key.of_place->kind : key.kind;
    return key.of_place != nullptr;
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
    constexpr std::int64_t kSecond = 1'000'000'000;
    constexpr std::int64_t kLast = 253402300799; // the last second of the year 9999
    const std::int64_t rest = (time % kSecond + kSecond) % kSecond;
    const std::int64_t second = std::clamp<std::int64_t>((time - rest) / kSecond, 0, kLast);
    const auto written =
        fmt::format_to_n(buffer.text.data(), buffer.text.size(), "{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                         fmt::gmtime(static_cast<std::time_t>(second)), rest / 1000);
    return Value::of(std::string_view{buffer.text.data(), written.size});
}

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

namespace {

/// Finds a key of records or of items.
std::optional<Key> find_own_key(KeyScope scope, std::string_view name, DescribedTypes more) {
    Key key;
    key.name = name;
    key.scope = scope;

    struct Prefix {
        std::string_view text;
        Key::Location way;
    };

    static constexpr std::array<Prefix, 3> kPrefixes{{{kFields, Key::Location::fields},
                                                      {kNames, Key::Location::names},
                                                      {kAt, Key::Location::place}}};
    for (const Prefix& prefix : kPrefixes) {
        if (name.starts_with(prefix.text)) {
            key.way = prefix.way;
            key.path = name.substr(prefix.text.size());
        }
    }
    bool found = false;
    switch (key.way) {
    case Key::Location::fields:
    case Key::Location::names:
        found = find_path(key, more);
        break;
    case Key::Location::place:
        found = find_place(key);
        break;
    default:
        found = find_table_row(key);
        break;
    }
    return found ? std::optional{std::move(key)} : std::nullopt;
}

/// Finds a key of a row. If an item and its record have the same key, such as `type`, finds the
/// item's.
std::optional<Key> find_row_key(std::string_view name, DescribedTypes more) {
    const bool of_item = name.starts_with(kItemsPrefix);
    name.remove_prefix(of_item ? kItemsPrefix.size() : 0);
    if (name == kRowRemoved) {
        Key key;
        key.name = name;
        key.scope = KeyScope::item;
        key.way = Key::Location::removed;
        key.kind = KeyKind::boolean;
        return key;
    }
    auto key = find_own_key(KeyScope::item, name, more);
    return key || of_item ? key : find_own_key(KeyScope::record, name, more);
}

} // namespace

std::optional<Key> find_key(KeyScope scope, std::string_view name, DescribedTypes more) {
    return scope == KeyScope::row ? find_row_key(name, more) : find_own_key(scope, name, more);
}

bool visit_record(const Key& key, const record::Record& record, bool show_secrets,
                  FormatBuffer& buffer, ValueVisitor& visitor) {
    OptionalValue found;
    if (key.way == Key::Location::row) {
        found = read_record(key, record, show_secrets, buffer);
    } else if (key.way == Key::Location::place) {
        const auto* const* finding = std::get_if<const record::FindingRecord*>(&record);
        if (finding != nullptr && (*finding)->place) {
            found = key.of_place->read(*(*finding)->place, {buffer, show_secrets});
        }
    } else if (const auto* const* message = std::get_if<const record::MessageRecord*>(&record)) {
        if ((*message)->name.empty()) {
            return false; // items of unknown objects have no fields
        }
        return key.way == Key::Location::names
                   ? visit_field_names(key.path, **message, visitor)
                   : visit_fields(key.path, **message, show_secrets, buffer, visitor);
    }
    return found && visitor.receive_value(*found);
}

std::vector<std::string> all_keys(KeyScope scope, DescribedTypes more) {
    std::vector<std::string> names;
    const auto add = [&](std::string_view prefix, std::string_view name) {
        names.push_back(std::string{prefix} + std::string{name});
    };
    for (const auto& row : place_keys()) {
        add(kAt, row.name);
    }
    if (scope != KeyScope::item) {
        add_record_keys(names);
        add_message_keys(names, more);
    }
    if (scope == KeyScope::row) {
        names.emplace_back(kRowRemoved);
    }
    if (scope != KeyScope::record) {
        names.emplace_back(record::kItemData.key.name());
        names.emplace_back(record::kItemSeenBy.key.name());
        for (const auto& row : item_keys()) {
            add({}, row.name);
        }
        for_each_field(more, [&](const FieldSpec& field) {
            add(kFields, field.name);
            if (field.names != nullptr) {
                add(kNames, field.name);
            }
        });
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

std::string_view most_similar_word(std::string_view word, std::span<const std::string_view> words) {
    constexpr std::size_t kMaxLength = 64; // longer words cannot be misspelt existing words
    std::string_view best;
    std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string_view each : words) {
        // The difference in length is a lower bound of the edit distance.
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
    return best;
}

namespace {

/// An existing key, and how similar it is to an unknown name.
struct KeyGuess {
    static constexpr std::size_t kEndsSo = 1;

    std::string key{};
    /// 0 if a key has exactly this name, kEndsSo if the key ends in a dot and the name; otherwise
    /// kEndsSo plus the edit distance. The lowest rank is the best.
    std::size_t rank = SIZE_MAX;
};

KeyGuess guess_key(KeyScope scope, std::string_view name, DescribedTypes more) {
    if (find_key(scope, name, more)) {
        return {.key = std::string{name}, .rank = 0};
    }
    const std::vector<std::string> keys = all_keys(scope, more);
    const std::string ending = "." + std::string{name};
    const std::string* shortest = nullptr;
    for (const std::string& key : keys) {
        if (key.ends_with(ending) && (shortest == nullptr || key.size() < shortest->size())) {
            shortest = &key;
        }
    }
    if (shortest != nullptr) {
        return {.key = *shortest, .rank = KeyGuess::kEndsSo};
    }
    const std::vector<std::string_view> views{keys.begin(), keys.end()};
    const std::string_view near = most_similar_word(name, views);
    return near.empty() ? KeyGuess{}
                        : KeyGuess{.key = std::string{near},
                                   .rank = KeyGuess::kEndsSo + edit_distance(name, near)};
}

} // namespace

std::string suggest_key(KeyScope scope, std::string_view name, DescribedTypes more) {
    const bool prefixed = name.starts_with(kItemsPrefix);
    name.remove_prefix(prefixed ? kItemsPrefix.size() : 0);
    KeyGuess best = guess_key(scope, name, more);
    bool of_item =
        scope == KeyScope::row && prefixed && find_key(KeyScope::item, best.key, more).has_value();
    if (scope == KeyScope::record) {
        KeyGuess item = guess_key(KeyScope::item, name, more);
        const bool wins_tie = prefixed || item.rank == KeyGuess::kEndsSo;
        if (item.rank < best.rank || (item.rank == best.rank && wins_tie)) {
            best = std::move(item);
            of_item = true;
        }
    }
    return best.key.empty() || !of_item ? best.key : std::string{kItemsPrefix} + best.key;
}

std::vector<std::string_view> possible_words(const Key& key, DescribedTypes more) {
    switch (key.way) {
    case Key::Location::place:
        return tile_names(key.path);
    case Key::Location::names:
        break;
    case Key::Location::row:
        if (key.scope == KeyScope::record && key.name != "item.type") {
            return possible_record_words(key.name);
        }
        if (key.name.ends_with("type")) {
            return item_type_names(more);
        }
        return {};
    default:
        return {};
    }
    if (key.scope == KeyScope::record) {
        return message_value_names(key.path, more);
    }
    std::vector<std::string_view> words;
    for_each_field(more, [&](const FieldSpec& field) {
        if (field.name == key.path && field.names != nullptr) {
            for (const snapshot::NamedValue& value : field.names->values) {
                words.push_back(value.name);
            }
        }
    });
    return words;
}

std::vector<std::string_view> item_type_names(DescribedTypes more) {
    std::vector<std::string_view> words{"descriptor"};
    for (const auto& table : {snapshot::object_table(), more.objects}) {
        for (const ObjectSpec& object : table) {
            words.push_back(object.name);
        }
    }
    return words;
}

using record::MessageRecord;
using wire::FieldValue;

namespace {

/// Finds the values at a dotted path in the flat list of a message's values. The elements of an
/// array have no names; their path is the path of their array.
class PathWalk {
  public:
    explicit PathWalk(std::string_view path) : path_{path} {}

    /// Must be called with each value of a message in order. Returns true if the value is at the
    /// path that the key names.
    bool step(const FieldValue& value) {
        if (value.kind == FieldValue::Kind::end) {
            --depth_;
            inside_ = std::min(inside_, depth_);
            return false;
        }
        std::size_t next = behind_[inside_];
        const bool fits = inside_ == depth_ && (value.name.empty() || take(value.name, next));
        if (value.kind != FieldValue::Kind::array_begin &&
            value.kind != FieldValue::Kind::object_begin) {
            return fits && next >= path_.size();
        }
        ++depth_;
        if (fits && depth_ < behind_.size()) {
            inside_ = depth_;
            behind_[inside_] = next;
        }
        return false;
    }

  private:
    /// The deepest nesting that is read; messages have at most three levels.
    static constexpr std::size_t kMaxDepth = 8;

    /// If the path continues with this name, moves `at` past the name and its dot. Returns whether
    /// the path continues with the name.
    [[nodiscard]] bool take(std::string_view name, std::size_t& at) const {
        const std::string_view rest = path_.substr(std::min(at, path_.size()));
        const std::string_view first = rest.substr(0, rest.find('.'));
        if (first != name) {
            return false;
        }
        at += name.size() + 1;
        return true;
    }

    std::string_view path_;
    std::size_t depth_ = 0;  ///< number of open brackets
    std::size_t inside_ = 0; ///< number of open brackets that are on the path
    /// For each open bracket on the path, the length of the path up to the bracket.
    std::array<std::size_t, kMaxDepth> behind_{};
};

/// Returns a partly redacted text, as in the JSON. The buffer is large enough for any message.
Value redacted_value(const FieldValue& value, FormatBuffer& buffer) {
    const std::string_view shown =
        value.kind == FieldValue::Kind::string ? wire::shown_part(value) : std::string_view{};
    const std::size_t room = buffer.text.size() - wire::kRedacted.size();
    auto* const end = std::ranges::copy(shown.substr(0, room), buffer.text.data()).out;
    std::ranges::copy(wire::kRedacted, end);
    return Value::of(std::string_view{buffer.text.data(),
                                      std::min(shown.size(), room) + wire::kRedacted.size()});
}

Value value_of(const FieldValue& value, bool show_secrets, FormatBuffer& buffer) {
    if (value.secrecy == wire::Secrecy::secret && !show_secrets &&
        (value.kind == FieldValue::Kind::string || value.kind == FieldValue::Kind::raw)) {
        return redacted_value(value, buffer);
    }
    switch (value.kind) {
    case FieldValue::Kind::boolean:
        return Value::of(value.integer != 0);
    case FieldValue::Kind::string:
        return Value::of(std::string_view{reinterpret_cast<const char*>(value.bytes.data()),
                                          value.bytes.size()});
    case FieldValue::Kind::raw:
        return hex_value(value.bytes, buffer);
    case FieldValue::Kind::uuid: {
        snapshot::Uuid uuid{};
        std::memcpy(uuid.data(), value.bytes.data(), std::min(uuid.size(), value.bytes.size()));
        return uuid_value(uuid, buffer);
    }
    default:
        return Value::of(value.integer);
    }
}

template <typename Use>
void for_each_message_field(DescribedTypes more, const Use& use) {
    for (const auto& messages : {wire::message_table(), more.messages}) {
        for (const wire::MessageSpec& message : messages) {
            for (const wire::MessageField& field : message.fields) {
                use(field.name, field.names);
            }
        }
    }
    for (const wire::Dialect dialect : {wire::Dialect::six, wire::Dialect::seven}) {
        for (const wire::ConnlessSpec& packet : wire::connless_table(dialect)) {
            for (const wire::MessageField& field : packet.fields) {
                use(field.name, field.names);
            }
        }
    }
    for (const wire::MessageField& field : wire::table::kClient) {
        use(field.name, field.names);
    }
    for (const wire::MessageField& field : wire::table::kSevenClient) {
        use(field.name, field.names);
    }
    for (const wire::MessageField& field :
         {wire::table::kAddress, wire::table::kPort, wire::table::kSurplus,
          wire::table::kCloseReason, wire::table::kControlToken}) {
        use(field.name, field.names);
    }
    for (const snapshot::ObjectSpec& object : snapshot::object_table()) {
        for (const snapshot::FieldSpec& field : object.fields) {
            use(field.name, field.names);
        }
    }
}

} // namespace

bool visit_fields(std::string_view path, const MessageRecord& record, bool show_secrets,
                  FormatBuffer& buffer, ValueVisitor& visitor) {
    PathWalk walk{path};
    for (const FieldValue& value : record.values) {
        if (walk.step(value) && visitor.receive_value(value_of(value, show_secrets, buffer))) {
            return true;
        }
    }
    return false;
}

bool visit_field_names(std::string_view path, const MessageRecord& record, ValueVisitor& visitor) {
    // Searches the fields of nested objects, too, but no arrays, whose names the JSON leaves out.
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

std::vector<std::string_view> message_field_names(DescribedTypes more) {
    std::vector<std::string_view> words;
    for_each_message_field(
        more, [&](std::string_view name, const snapshot::NameTable*) { words.push_back(name); });
    return words;
}

void add_message_keys(std::vector<std::string>& names, DescribedTypes more) {
    for_each_message_field(more, [&](std::string_view name, const snapshot::NameTable* values) {
        names.push_back("fields." + std::string{name});
        if (values != nullptr) {
            names.push_back("names." + std::string{name});
        }
    });
}

std::vector<std::string_view> message_value_names(std::string_view field, DescribedTypes more) {
    std::vector<std::string_view> words;
    for_each_message_field(more, [&](std::string_view name, const snapshot::NameTable* names) {
        if (name == field && names != nullptr) {
            for (const snapshot::NamedValue& value : names->values) {
                words.push_back(value.name);
            }
        }
    });
    return words;
}

} // namespace tw::filter
