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

/// A message that a mod adds, as the mod's description declares it. Owns its texts and names.
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
    std::string uuid_name{}; ///< the text from which the UUID is derived; empty if unknown
    bool system = false;
    MessageDirection direction = MessageDirection::both;
    bool secret = false;
    std::vector<Field> fields{};
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< the dialect to which `number` belongs
};

/// The messages that a mod adds to the message table.
class MessageSet {
  public:
    /// The most messages that can be added. No known mod has as many.
    static constexpr std::size_t kMaxCustom = 256;

    MessageSet() { custom_.reserve(kMaxCustom); }

    /// A set without added messages.
    [[nodiscard]] static const MessageSet& standard();

    /// Adds a message. Returns false if the set is full, if the number or UUID was added before, if
    /// the message table has the UUID, or if the number is the id of a message in MessageId.
    [[nodiscard]] bool add(const CustomMessage& message);

    /// The added messages. Pointers to them stay valid.
    [[nodiscard]] std::span<const MessageSpec> custom() const { return custom_; }

    /// Finds an added message; null if there is none.
    [[nodiscard]] const MessageSpec* find_added(bool system, std::uint16_t number,
                                                snapshot::Dialect dialect) const;
    [[nodiscard]] const MessageSpec* find_added(const snapshot::Uuid& uuid) const;

  private:
    /// The texts and names that a custom spec points at.
    struct OwnedTexts {
        CustomMessage message;
        std::vector<MessageField> fields;
        std::deque<std::vector<snapshot::NamedValue>> values;
        std::deque<snapshot::NameTable> tables;
    };

    std::vector<MessageSpec> custom_; ///< never reallocated: room for kMaxCustom is reserved
    std::vector<std::unique_ptr<OwnedTexts>> owned_;
};

/// The objects and messages that twscope knows: the standard ones, and those that a mod's description
/// adds.
struct ModDescription {
    snapshot::ObjectSet objects{};
    MessageSet messages{};

    /// The standard objects and messages, without a mod's.
    [[nodiscard]] static const ModDescription& standard() {
        static const ModDescription description;
        return description;
    }
};

} // namespace tw::wire
