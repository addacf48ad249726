#include "proxy/sink/json_object.h"

#include "proxy/record/item_schema.h"

#include <algorithm>
#include <array>
#include <string>

namespace tw::sink {

namespace {

constexpr std::size_t kMaxIntString = 4 * snapshot::kMaxStringInts;
/// In JSON: quoted, and every byte may need six.
constexpr std::size_t kIntStringRoom = 6 * kMaxIntString + 2;

using record::kItemFields;
using record::kItemId;
using record::kItemNames;
using record::kItemType;
using record::kItemTypeId;
using record::kItemUuid;

/// `,"fields":{`
template <typename Key>
Literal opening(const Key& key) {
    return Literal{std::string{key.json()} + '{'};
}

const Literal kIdKey{kItemId.key.json()};
const Literal kFieldsKey = opening(kItemFields.key);
const Literal kNamesKey = opening(kItemNames.key);

std::string prepared_front(const snapshot::ObjectSpec& object) {
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
    if (is_plain(text.view())) {
        *to++ = '"';
        std::memcpy(to, text.bytes.data(), kMaxIntString);
        to += text.size;
        *to++ = '"';
        return to;
    }
    JsonBuffer escaped; // rare: hardly a name holds what must be escaped
    escaped.append_string(text.view());
    std::memcpy(to, escaped.view().data(), escaped.size());
    return to + escaped.size();
}

} // namespace

void append_int_string(JsonBuffer& out, std::span<const std::int32_t> ints) {
    out.took(put_int_string(out.room(kIntStringRoom), ints));
}

ObjectWriter::ObjectWriter(const snapshot::ObjectSpec& object)
    : front_{prepared_front(object)}, room_{front_.room() + 2 * kIntRoom + kIdKey.room() +
                                            kFieldsKey.room() + kNamesKey.room()} {
    for (const snapshot::FieldSpec& field : object.fields) {
        const std::string key = '"' + std::string{field.name} + "\":";
        fields_.push_back({.key = Literal{fields_.empty() ? key : ',' + key},
                           .kind = field.kind,
                           .offset = field.offset,
                           .count = field.count,
                           .bit = record::Sightings::bit(field.offset)});
        room_ += fields_.back().key.room() + kIntStringRoom + field.count * kIntRoom;
        if (field.names != nullptr) {
            prepare_names(field);
        }
    }
}

void ObjectWriter::prepare_names(const snapshot::FieldSpec& field) {
    const std::string key = ",\"" + std::string{field.name} + "\":";
    const auto& values = field.names->values;
    Names names{.offset = field.offset,
                .when = field.names_when,
                .bit = record::Sightings::bit(field.offset)};
    if (field.names->flags) {
        names.key = Literal{key + '['};
        room_ += names.key.room();
        for (const snapshot::NamedValue& flag : values) {
            names.flags.push_back({.mask = static_cast<std::uint32_t>(flag.value),
                                   .name = Literal{",\"" + std::string{flag.name} + '"'}});
            room_ += names.flags.back().name.room();
        }
    } else {
        std::size_t longest = 0;
        for (const snapshot::NamedValue& each : values) {
            names.values.push_back(
                {.value = each.value, .text = Literal{key + '"' + std::string{each.name} + '"'}});
            longest = std::max(longest, names.values.back().text.room());
        }
        // Of two names for one value the first one counts.
        auto& sorted = names.values;
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const Name& a, const Name& b) { return a.value < b.value; });
        sorted.erase(std::unique(sorted.begin(), sorted.end(),
                                 [](const Name& a, const Name& b) { return a.value == b.value; }),
                     sorted.end());
        room_ += longest;
    }
    names_.push_back(std::move(names));
}

char* ObjectWriter::put_fields(char* to, std::span<const std::int32_t> data,
                               std::uint32_t untold) const {
    char* const begin = to;
    for (const Field& field : fields_) {
        if (std::size_t{field.offset} + field.count > data.size()) {
            break; // an older server sends fewer ints; what is there is written
        }
        if ((untold & field.bit) != 0) {
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
            to -= ints.empty() ? 0 : 1; // no comma behind the last
            *to++ = ']';
        } else {
            to = put_int(to, ints.front());
        }
    }
    if (untold != 0 && to != begin && *begin == ',') { // the first field was left out
        std::memmove(begin, begin + 1, static_cast<std::size_t>(to - begin) - 1);
        --to;
    }
    return to;
}

char* ObjectWriter::put_name(char* to, const Names& names, std::int32_t value) {
    if (names.key.size() == 0) {
        if (names.values.empty()) {
            return to;
        }
        // Most enums have no holes, so that a value's place is known.
        const auto guess =
            static_cast<std::size_t>(std::int64_t{value} - names.values.front().value);
        if (guess < names.values.size() && names.values[guess].value == value) {
            return names.values[guess].text.put(to);
        }
        const auto found = std::lower_bound(
            names.values.begin(), names.values.end(), value,
            [](const Name& name, std::int64_t wanted) { return name.value < wanted; });
        return found != names.values.end() && found->value == value ? found->text.put(to) : to;
    }
    if (value == 0) {
        return to;
    }
    const auto bits = static_cast<std::uint32_t>(value);
    // Every flag comes with a comma in front; the first one's is where the bracket belongs.
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
                              std::uint32_t untold) const {
    char* const begin = to;
    // Every name comes with a comma in front; the first one's makes way for the key.
    to = kNamesKey.put(to);
    char* const first = to;
    for (const Names& names : names_) {
        if (names.offset >= data.size()) {
            break;
        }
        if ((untold & names.bit) == 0 && snapshot::names_hold(names.when, names.offset, data)) {
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
                         std::uint32_t untold, JsonBuffer& out) const {
    char* to = front_.put(out.room(room_));
    to = put_int(to, key.type);
    to = put_int(kIdKey.put(to), key.id);
    to = put_fields(kFieldsKey.put(to), data, untold);
    *to++ = '}';
    out.took(put_names(to, data, untold));
}

} // namespace tw::sink
