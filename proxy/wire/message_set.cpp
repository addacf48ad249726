#include "proxy/wire/message_set.h"

#include <algorithm>

namespace tw::wire {

const MessageSet& MessageSet::standard() {
    static const MessageSet set;
    return set;
}

const MessageSpec* MessageSet::find_added(bool system, std::uint16_t number,
                                          snapshot::Dialect dialect) const {
    const auto found = std::ranges::find_if(custom_, [&](const MessageSpec& spec) {
        return spec.number == number && spec.number != 0 && spec.system == system &&
               spec.dialect == dialect;
    });
    return found == custom_.end() ? nullptr : &*found;
}

// The system bit does not matter here; the UUID alone identifies a message.
const MessageSpec* MessageSet::find_added(const snapshot::Uuid& uuid) const {
    const auto found = std::ranges::find_if(
        custom_, [&](const MessageSpec& spec) { return spec.number == 0 && spec.uuid == uuid; });
    return found == custom_.end() ? nullptr : &*found;
}

bool MessageSet::add(const CustomMessage& message) {
    const bool numbered = message.number != 0;
    const MessageSpec* const own = numbered
                                       ? find_added(message.system, message.number, message.dialect)
                                       : find_added(message.uuid);
    const MessageSpec* const known =
        numbered ? find_message(message.system, message.number, message.dialect)
                 : find_message(message.uuid);
    const bool is_read =
        known != nullptr && (!numbered || known->system || known->id != MessageId::other);
    if (own != nullptr || is_read || custom_.size() == kMaxCustom) {
        return false;
    }
    auto owned = std::make_unique<OwnedTexts>();
    owned->message = message;
    for (const CustomMessage::Field& field : owned->message.fields) {
        MessageField spec{.name = field.name,
                          .type = field.type,
                          .optional = field.optional,
                          .secrecy = field.secret ? Secrecy::secret : Secrecy::open};
        if (field.type == FieldType::boolean) { // game programs accept 0 and 1 only
            spec.min = 0;
            spec.max = 1;
        }
        if (!field.names.empty()) {
            auto& values = owned->values.emplace_back();
            for (const auto& [value, name] : field.names) {
                values.push_back({.value = value, .name = name});
            }
            owned->tables.push_back({.name = field.name, .flags = field.flags, .values = values});
            spec.names = &owned->tables.back();
        }
        owned->fields.push_back(spec);
    }
    custom_.push_back({.number = message.number,
                       .system = message.system,
                       .direction = message.direction,
                       .name = owned->message.name,
                       .uuid_name = owned->message.uuid_name,
                       .uuid = message.uuid,
                       .fields = owned->fields,
                       .secrecy = message.secret ? Secrecy::secret : Secrecy::open,
                       .dialect = message.dialect});
    owned_.push_back(std::move(owned));
    return true;
}

} // namespace tw::wire
