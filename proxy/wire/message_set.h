#pragma once

#include "proxy/wire/message.h"
#include "snapshot/objects.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tw::wire {

/// A message that a mod adds, as its description declares it. It owns its texts and names.
struct CustomMessage {
    struct Field {
        std::string name;
        FieldType type = FieldType::integer;
        bool optional = false;
        bool secret = false;
        bool flags = false;
        std::vector<std::pair<std::int64_t, std::string>> names{};
    };

    std::uint16_t number = 0; ///< id on the wire; 0 if the message has a UUID
    snapshot::Uuid uuid{};
    std::string name;
    std::string uuid_name{}; ///< text the UUID is derived from; empty if unknown
    bool system = false;
    Who direction = Who::both;
    bool secret = false;
    std::vector<Field> fields{};
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< dialect in which `number` is its id
};

/// The messages that a mod adds to the message table.
class MessageSet {
  public:
    /// Limit of added messages, more than any mod has.
    static constexpr std::size_t kMaxCustom = 256;

    MessageSet() { custom_.reserve(kMaxCustom); }

    /// A set without added messages.
    [[nodiscard]] static const MessageSet& standard();

    /// Adds a message. Returns false if the set is full, if the number or UUID was added before, if
    /// the message table has the UUID, or if the number is that of a MessageId.
    [[nodiscard]] bool add(const CustomMessage& message);

    /// The added messages. The specs do not move.
    [[nodiscard]] std::span<const MessageSpec> custom() const { return custom_; }

    /// An added message; null if there is none.
    [[nodiscard]] const MessageSpec* find_own(bool system, std::uint16_t number,
                                              snapshot::Dialect dialect) const;
    [[nodiscard]] const MessageSpec* find_own(const snapshot::Uuid& uuid) const;

  private:
    /// The texts and names that a custom spec points at.
    struct Owned {
        CustomMessage message;
        std::vector<MessageField> fields;
        std::deque<std::vector<snapshot::NamedValue>> values;
        std::deque<snapshot::NameTable> tables;
    };

    std::vector<MessageSpec> custom_; ///< never reallocated: room for kMaxCustom is reserved
    std::vector<std::unique_ptr<Owned>> owned_;
};

/// The objects and messages known to a run: the standard tables plus a mod's description.
struct ModDescription {
    snapshot::ObjectSet objects{};
    MessageSet messages{};

    /// The standard tables only.
    [[nodiscard]] static const ModDescription& standard() {
        static const ModDescription description;
        return description;
    }
};

} // namespace tw::wire
