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

/// A message that a mod adds. Owns what its description points at.
struct CustomMessage {
    struct Field {
        std::string name;
        FieldType type = FieldType::integer;
        bool optional = false;
        bool secret = false;
        bool flags = false;
        std::vector<std::pair<std::int64_t, std::string>> names{};
    };

    std::uint16_t number = 0; ///< 0: it has a UUID
    snapshot::Uuid uuid{};
    std::string name;
    std::string uuid_name{}; ///< what the UUID was made of; empty if unknown
    bool system = false;
    Who direction = Who::both;
    bool secret = false;
    std::vector<Field> fields{};
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< of a number
};

/// The messages that a mod describes, beside those of the table.
class MessageSet {
  public:
    /// More than any mod has.
    static constexpr std::size_t kMaxCustom = 256;

    MessageSet() { custom_.reserve(kMaxCustom); }

    /// The table alone.
    [[nodiscard]] static const MessageSet& standard();

    /// False if another added message has the number or UUID, if the table has the UUID, or a number
    /// that the program acts on, or if the set is full.
    [[nodiscard]] bool add(const CustomMessage& message);

    /// What was added; specs stay where they are.
    [[nodiscard]] std::span<const MessageSpec> custom() const { return custom_; }

    /// An added message; null if there is none.
    [[nodiscard]] const MessageSpec* find_own(bool system, std::uint16_t number,
                                              snapshot::Dialect dialect) const;
    [[nodiscard]] const MessageSpec* find_own(const snapshot::Uuid& uuid) const;

  private:
    /// What custom specs point at.
    struct Owned {
        CustomMessage message;
        std::vector<MessageField> fields;
        std::deque<std::vector<snapshot::NamedValue>> values;
        std::deque<snapshot::NameTable> tables;
    };

    std::vector<MessageSpec> custom_; ///< never grows past what it has reserved
    std::vector<std::unique_ptr<Owned>> owned_;
};

/// What a run knows of objects and messages: the tables, and what a mod describes.
struct ModDescription {
    snapshot::ObjectSet objects{};
    MessageSet messages{};

    /// The tables alone.
    [[nodiscard]] static const ModDescription& standard() {
        static const ModDescription description;
        return description;
    }
};

} // namespace tw::wire
