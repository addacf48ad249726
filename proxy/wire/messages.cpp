#include "proxy/wire/message_builders.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace tw::wire {
namespace {

/// Classic ids are below 32 (protocol sheet, section 5.1), in 0.7 below 40 (its sheet, 5.3).
constexpr std::size_t kClassicIds = 64;
/// Slots for the UUIDs: a power of two, more than twice as many as there are UUIDs.
constexpr std::size_t kUuidSlots = 128;

/// All messages, and the two ways to find one.
class Index {
  public:
    Index() {
        const auto system = table::system_messages();
        const auto game = table::game_messages();
        const auto seven = table::seven_messages();
        messages_.reserve(system.size() + game.size() + seven.size());
        messages_.insert(messages_.end(), system.begin(), system.end());
        messages_.insert(messages_.end(), game.begin(), game.end());
        messages_.insert(messages_.end(), seven.begin(), seven.end());
        for (const auto& message : messages_) {
            if (message.number != 0) {
                classic_[row(message.system, message.dialect)][message.number % kClassicIds] =
                    &message;
            } else {
                *slot(message.uuid) = &message;
            }
        }
    }

    [[nodiscard]] std::span<const MessageSpec> messages() const { return messages_; }

    [[nodiscard]] const MessageSpec* find(bool system, std::uint16_t number,
                                          snapshot::Dialect dialect) const {
        return number < kClassicIds ? classic_[row(system, dialect)][number] : nullptr;
    }

    [[nodiscard]] const MessageSpec* find(const snapshot::Uuid& uuid) const {
        for (std::size_t at = home(uuid);; at = (at + 1) % kUuidSlots) {
            const MessageSpec* const found = uuids_[at];
            if (found == nullptr || found->uuid == uuid) {
                return found;
            }
        }
    }

  private:
    [[nodiscard]] static std::size_t row(bool system, snapshot::Dialect dialect) {
        return 2 * static_cast<std::size_t>(dialect) + (system ? 1U : 0U);
    }

    /// These UUIDs are hashes themselves, any byte of them spreads well. Only ours are in the
    /// table, so no peer can make it slow, and the empty slots end every search.
    [[nodiscard]] static std::size_t home(const snapshot::Uuid& uuid) {
        return uuid[0] % kUuidSlots;
    }

    [[nodiscard]] const MessageSpec** slot(const snapshot::Uuid& uuid) {
        std::size_t at = home(uuid);
        while (uuids_[at] != nullptr) {
            at = (at + 1) % kUuidSlots;
        }
        return &uuids_[at];
    }

    std::vector<MessageSpec> messages_;
    std::array<std::array<const MessageSpec*, kClassicIds>, 2 * snapshot::kDialects> classic_{};
    std::array<const MessageSpec*, kUuidSlots> uuids_{};
};

const Index& index() {
    static const Index instance;
    return instance;
}

} // namespace

std::span<const MessageSpec> message_table() {
    return index().messages();
}

const MessageSpec* find_message(bool system, std::uint16_t number, snapshot::Dialect dialect) {
    return index().find(system, number, dialect);
}

const MessageSpec* find_message(const snapshot::Uuid& uuid) {
    return index().find(uuid);
}

} // namespace tw::wire
