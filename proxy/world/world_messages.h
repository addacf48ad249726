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

/// How a message of this name is told apart from what is for one player alone.
enum class Audience : std::uint8_t {
    everybody, ///< the server sends it to all who play
    two,       ///< to all or to one, and nothing in it says which: what two were told was for all
    chat,      ///< what a player says to all is for everybody, what the server says is as `two`
};

/// Messages that are the same for everybody; all others are about one player, one team or one client.
/// Null: this is one of those.
[[nodiscard]] const Audience* find_audience(std::string_view message);

/// The server's id of a view's client; nothing: nobody's.
using ClientNumber = std::function<std::optional<std::uint16_t>(std::int32_t client)>;

/// A message as it stands in a world.
struct Broadcast {
    const wire::MessageSpec* spec = nullptr;
    std::vector<std::byte> bytes; ///< equal where the same was said
    bool for_two = false;         ///< nobody knows whom it is for until a second session was told
};

/// Reads a message that a session was sent. `world`: the dialect that its world is told in. `number`:
/// null: the session's client ids are the server's. Nothing: it is not for everybody, it is malformed,
/// `world` has no such message, or it is of a client that nobody knows.
[[nodiscard]] std::optional<Broadcast> read_broadcast(std::span<const std::byte> payload,
                                                      snapshot::Dialect dialect,
                                                      snapshot::Dialect world,
                                                      const ClientNumber& number);

/// What a server says to everybody, each thing once however many sessions it is said to. A session is
/// told each thing once, so that the same bytes are said as often as the one session is told them that
/// is told them most. It waits for the world of the tick in which its session was told, since only
/// that knows whose ids it names.
class WorldMessages {
  public:
    /// What one session is told is what another was told within so many ticks: vital chunks that were
    /// lost come again a second later, or two.
    static constexpr snapshot::Tick kWindow = 150;
    /// Each server keeps no more: 64 players who are all told of 100 kills while a world waits for one
    /// who is behind.
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

    /// A session was told something. `at`: where it is.
    void add(std::uint32_t session, const Moment& at, record::Timestamp time,
             std::span<const std::byte> payload);
    /// A world has a view of this session. `ids`: of its clients; null: they are the server's.
    void see(std::uint32_t session, const ClientIds* ids);
    /// The session is over.
    void leave(std::uint32_t session);

    /// The world that closes. `to` takes what is new with it.
    struct World {
        std::string_view server{};
        std::uint32_t run = 1;
        snapshot::Tick tick = 0;
        snapshot::Dialect dialect = snapshot::Dialect::six;
    };

    void tell(const World& world, record::WorldMessageSink& to);
    /// Another run: nothing of the one before is told again.
    void begin_run();
    /// Keeps nothing: what waits is lost.
    void clear();

    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    /// Messages for which there was no room.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    struct Waiting {
        std::uint32_t session = 0;
        Moment at{};
        record::Timestamp time = 0;
        std::vector<std::byte> payload{};
    };

    /// One time that a thing was said.
    struct Time {
        std::uint64_t number = 0; ///< in the order in which all was said
        record::Timestamp first = 0;
        bool passed_on = false;
    };

    /// A thing that was said. A session was told the first so many times of it.
    struct Line {
        const wire::MessageSpec* spec = nullptr;
        bool for_two = false; ///< as in Broadcast, and several play
        std::deque<Time> times{};
        std::map<std::uint32_t, std::size_t> told{}; ///< how many of them, by session
    };

    using Lines = std::map<std::vector<std::byte>, Line>; ///< by their bytes

    /// When a line's first time is forgotten.
    struct Age {
        snapshot::Tick tick = 0;
        Lines::iterator line{};
    };

    /// To be passed on.
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

    /// What each keeps beside its bytes: more where it waits, so that nothing grows when it is taken.
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
