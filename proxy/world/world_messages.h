#pragma once

#include "proxy/record/records.h"
#include "proxy/wire/message.h"
#include "proxy/world/id_restorer.h"
#include "proxy/world/view_collector.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::world {

/// The players to whom a server sends messages of a type.
enum class Recipients : std::uint8_t {
    all_players, ///< the server always sends the message to all players
    /// The server sends the message to all players or to one. A message that two sessions receive
    /// counts as sent to all.
    all_or_one,
    /// Chat. A player's line to everybody is sent to all players. For the server's own lines, the
    /// rule of `all_or_one` applies.
    chat,
};

/// Returns the recipients of the message with this name; null if the message is for one player,
/// team or client, or if its content depends on the recipient.
[[nodiscard]] const Recipients* find_recipients(std::string_view message);

/// Collects the messages that a server sends to all players, and passes each one on once, however
/// many sessions received it. A message received several times by one session was sent several
/// times. A message waits until its tick is merged, because its client ids can be translated only
/// then.
class WorldMessages {
  public:
    /// A message to all players reaches all sessions within this many ticks, because a lost vital
    /// chunk is resent after a second or two.
    static constexpr snapshot::Tick kMaxDeliveryTicks = 150;
    /// The memory limit per server in bytes. It suffices if 64 players receive 100 kill messages
    /// each while a tick waits for a late view.
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

    /// Adds a message that a session received. `at`: the map run and tick of the session's latest
    /// snapshot.
    void add_message(std::uint32_t session, const TickInMapRun& at, record::Timestamp time,
                     std::span<const std::byte> payload);
    /// Adds a session with a view in the next merged tick. `ids`: the client ids for the session's
    /// client numbers; null if the numbers are the server's client ids.
    void add_viewing_session(std::uint32_t session, const ClientIds* ids);
    /// Removes a session as soon as its waiting messages are processed.
    void remove_session(std::uint32_t session);

    /// The merged tick that is being written.
    struct WrittenWorld {
        std::string_view server{};
        std::uint32_t map_run = 1;
        snapshot::Tick tick = 0;
        snapshot::Dialect dialect = snapshot::Dialect::six;
    };

    void pass_on_messages(const WrittenWorld& world, record::WorldMessageSink& to);
    /// Forgets the messages of the previous map run (see ViewCollector).
    void begin_map_run();
    /// Forgets all messages. Messages that wait for their tick count as lost.
    void clear();

    [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

    /// Returns the number of messages dropped because the memory limit was reached.
    [[nodiscard]] std::uint64_t lost_message_count() const { return num_lost_messages_; }

  private:
    struct WaitingMessage {
        std::uint32_t session = 0;
        TickInMapRun tick_in_map_run{};
        record::Timestamp time = 0;
        std::vector<std::byte> payload{};
    };

    /// One sending of a message text by the server.
    struct Occurrence {
        std::uint64_t number = 0; ///< sequence number among all occurrences of all texts
        record::Timestamp first_time = 0;
        bool is_passed_on = false;
    };

    struct MessageOccurrences {
        const wire::MessageSpec* spec = nullptr;
        /// True if the text counts as sent to all players only when a second session has received
        /// it. False while only one session plays.
        bool needs_second_recipient = false;
        std::deque<Occurrence> occurrences{};
        /// The number of occurrences that each session has received, counted from the oldest.
        std::map<std::uint32_t, std::size_t> num_received{};
    };

    using MessageTexts = std::map<std::vector<std::byte>, MessageOccurrences>; ///< by message bytes

    /// An occurrence of a text. It is forgotten kMaxDeliveryTicks ticks after `tick`.
    struct AgingOccurrence {
        snapshot::Tick tick = 0;
        MessageTexts::iterator text{};
    };

    /// A message of one or more sessions that can be reported now.
    struct ReadyMessage {
        std::uint64_t number = 0;
        record::Timestamp time = 0;
        MessageTexts::const_iterator text{};
    };

    struct Session {
        bool has_left = false;
        /// The client ids of the numbers that the client uses for players; nullopt if the numbers
        /// are the server's client ids.
        std::optional<ClientIds> client_ids{};
    };

    // The estimated memory, in bytes, of a WaitingMessage without its payload, of an Occurrence,
    // and of an entry of MessageOccurrences::num_received. A processed message counts no more than
    // a waiting one, because the second and the third constant add up to the first.
    static constexpr std::size_t kWaitingMessageBytes = 192;
    static constexpr std::size_t kOccurrenceBytes = 128;
    static constexpr std::size_t kReceivedCountBytes = 64;

    void collect_ready_message(const WaitingMessage& waiting, const WrittenWorld& world);
    void forget_oldest_occurrence(MessageTexts::iterator text);
    [[nodiscard]] std::size_t count_playing_sessions() const;

    std::deque<WaitingMessage> waiting_messages_;
    MessageTexts message_texts_;
    std::deque<AgingOccurrence> occurrences_by_age_; ///< oldest first
    std::vector<ReadyMessage> ready_messages_;
    std::map<std::uint32_t, Session> sessions_;
    std::uint64_t newest_occurrence_number_ = 0;
    std::size_t memory_bytes_ = 0;
    std::uint64_t num_lost_messages_ = 0;
};

} // namespace tw::world
