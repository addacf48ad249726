#pragma once

#include "proxy/record/records.h"
#include "proxy/wire/message.h"
#include "proxy/world/timeline.h"
#include "proxy/world/translation.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::world {

/// How to tell whether a message is for all players or for one.
enum class Audience : std::uint8_t {
    everybody, ///< always sent to all players
    two,       ///< sent to all players or one; received by two sessions, it is for all
    chat,      ///< a player's message to all is for all; the server's own messages are as `two`
};

/// Returns the audience of messages that have equal content for all recipients; null for messages
/// about one player, team or client.
[[nodiscard]] const Audience* find_audience(std::string_view message);

/// Returns the server's id of a view's client number; nullopt if it has none.
using ClientNumber = std::function<std::optional<std::uint16_t>(std::int32_t client)>;

/// A message in the form in which a world contains it.
struct Broadcast {
    const wire::MessageSpec* spec = nullptr;
    std::vector<std::byte> bytes; ///< equal for equal messages
    bool for_two = false;         ///< its audience is known once a second session has received it
};

/// Converts a message that a session received. `world`: the dialect of the session's world.
/// `number`: null if the session's client ids are the server's. Returns nullopt if the message is
/// not for all players, is malformed, does not exist in `world`, or is of an unknown client.
[[nodiscard]] std::optional<Broadcast> read_broadcast(std::span<const std::byte> payload,
                                                      snapshot::Dialect dialect,
                                                      snapshot::Dialect world,
                                                      const ClientNumber& number);

/// Collects the broadcast messages of a server, each once for all sessions that received it. A
/// session receives each broadcast once, so a text was sent as often as the session with the most
/// copies received it. A message waits for the world of its tick, because client ids in it can only
/// be translated there.
class WorldMessages {
  public:
    /// Copies of a message in several sessions are within this many ticks: lost vital chunks are
    /// resent after a second or two.
    static constexpr snapshot::Tick kWindow = 150;
    /// The memory limit per server: 64 players who are told of 100 kills while a world waits for a
    /// late view.
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

    /// Adds a message that a session received. `at`: the session's position in the game.
    void add(std::uint32_t session, const Moment& at, record::Timestamp time,
             std::span<const std::byte> payload);
    /// Notes that the next world has a view of this session. `ids`: its client ids; null: the
    /// server's.
    void see(std::uint32_t session, const ClientIds* ids);
    /// Notes that the session has ended.
    void leave(std::uint32_t session);

    /// The world that closes; `to` receives the new messages of its tick.
    struct World {
        std::string_view server{};
        std::uint32_t run = 1;
        snapshot::Tick tick = 0;
        snapshot::Dialect dialect = snapshot::Dialect::six;
    };

    void tell(const World& world, record::WorldMessageSink& to);
    /// Starts a new run; forgets the messages of the previous one.
    void begin_run();
    /// Forgets all messages; waiting ones are lost.
    void clear();

    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    /// Messages dropped for want of memory.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    struct Waiting {
        std::uint32_t session = 0;
        Moment at{};
        record::Timestamp time = 0;
        std::vector<std::byte> payload{};
    };

    /// One occurrence of a message text.
    struct Time {
        std::uint64_t number = 0; ///< sequence number over all messages
        record::Timestamp first = 0;
        bool passed_on = false;
    };

    /// A message text and its occurrences. Each session has received the first of them, as many as
    /// `told` says.
    struct Line {
        const wire::MessageSpec* spec = nullptr;
        bool for_two = false; ///< as in Broadcast, while several sessions play
        std::deque<Time> times{};
        std::map<std::uint32_t, std::size_t> told{}; ///< number of occurrences received, by session
    };

    using Lines = std::map<std::vector<std::byte>, Line>; ///< by message bytes

    /// When to forget the first occurrence of a line.
    struct Age {
        snapshot::Tick tick = 0;
        Lines::iterator line{};
    };

    /// An occurrence that is to be passed on.
    struct Ready {
        std::uint64_t number = 0;
        record::Timestamp time = 0;
        Lines::const_iterator line{};
    };

    struct Session {
        bool translated = false;
        bool left = false;
        ClientIds ids{};
    };

    /// Memory use of an entry besides its bytes. It is higher while the entry waits, so that
    /// processing does not increase it.
    static constexpr std::size_t kWaitingBytes = 192;
    static constexpr std::size_t kTimeBytes = 128;
    static constexpr std::size_t kToldBytes = 64;

    void take(const Waiting& waiting, const World& world);
    void forget_first(Lines::iterator line);
    [[nodiscard]] std::size_t playing() const;

    std::deque<Waiting> waiting_;
    Lines lines_;
    std::deque<Age> ages_; ///< oldest first
    std::vector<Ready> ready_;
    std::map<std::uint32_t, Session> sessions_;
    std::uint64_t number_ = 0;
    std::size_t bytes_ = 0;
    std::uint64_t lost_ = 0;
};

} // namespace tw::world
