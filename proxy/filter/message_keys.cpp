// What stands below `fields` and `names` of messages.

#include "proxy/filter/tables.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/message_layouts.h"
#include "proxy/wire/secrets.h"

#include <algorithm>
#include <cstring>

namespace tw::filter {

using record::MessageRecord;
using wire::FieldValue;

namespace {

/// Follows a flat list of values along a dotted path. Elements of arrays have no name of their own:
/// they count as what their array is.
class PathWalk {
  public:
    explicit PathWalk(std::string_view path) : path_{path} {}

    /// Steps over the next value; true when the path ends at it.
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
    /// Messages nest three deep at most.
    static constexpr std::size_t kMaxDepth = 8;

    /// Moves `at` behind this name and its dot if the path goes on with it.
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
    std::size_t depth_ = 0;                       ///< open brackets
    std::size_t inside_ = 0;                      ///< how many of them lie on the path
    std::array<std::size_t, kMaxDepth> behind_{}; ///< what of the path each of those has used up
};

/// As the JSON has it. No message is longer than the room.
Value redacted_value(const FieldValue& value, Scratch& scratch) {
    const std::string_view shown =
        value.kind == FieldValue::Kind::string ? wire::shown_part(value) : std::string_view{};
    const std::size_t room = scratch.text.size() - wire::kRedacted.size();
    auto* const end = std::ranges::copy(shown.substr(0, room), scratch.text.data()).out;
    std::ranges::copy(wire::kRedacted, end);
    return Value::of(std::string_view{scratch.text.data(),
                                      std::min(shown.size(), room) + wire::kRedacted.size()});
}

Value value_of(const FieldValue& value, bool show_secrets, Scratch& scratch) {
    if (value.secrecy == wire::Secrecy::secret && !show_secrets &&
        (value.kind == FieldValue::Kind::string || value.kind == FieldValue::Kind::raw)) {
        return redacted_value(value, scratch);
    }
    switch (value.kind) {
    case FieldValue::Kind::boolean:
        return Value::of(value.integer != 0);
    case FieldValue::Kind::string:
        return Value::of(std::string_view{reinterpret_cast<const char*>(value.bytes.data()),
                                          value.bytes.size()});
    case FieldValue::Kind::raw:
        return hex_value(value.bytes, scratch);
    case FieldValue::Kind::uuid: {
        snapshot::Uuid uuid{};
        std::memcpy(uuid.data(), value.bytes.data(), std::min(uuid.size(), value.bytes.size()));
        return uuid_value(uuid, scratch);
    }
    default:
        return Value::of(value.integer);
    }
}

template <typename Use>
void for_each_message_field(Described more, const Use& use) {
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
                  Scratch& scratch, ValueVisitor& visitor) {
    PathWalk walk{path};
    for (const FieldValue& value : record.values) {
        if (walk.step(value) && visitor.take(value_of(value, show_secrets, scratch))) {
            return true;
        }
    }
    return false;
}

bool visit_field_names(std::string_view path, const MessageRecord& record, ValueVisitor& visitor) {
    // As the JSON has it: by the field's own name wherever it stands, but not inside arrays.
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

std::vector<std::string_view> message_field_words(Described more) {
    std::vector<std::string_view> words;
    for_each_message_field(
        more, [&](std::string_view name, const snapshot::NameTable*) { words.push_back(name); });
    return words;
}

void add_message_keys(std::vector<std::string>& names, Described more) {
    for_each_message_field(more, [&](std::string_view name, const snapshot::NameTable* values) {
        names.push_back("fields." + std::string{name});
        if (values != nullptr) {
            names.push_back("names." + std::string{name});
        }
    });
}

std::vector<std::string_view> message_value_words(std::string_view field, Described more) {
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
