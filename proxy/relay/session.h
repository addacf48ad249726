#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/listener.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"
#include "proxy/relay/stranger_filter.h"
#include "proxy/relay/tap.h"
#include "proxy/relay/upstream.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

namespace tw::relay {

/// What an entry of a timer wheel has as its member `timer`.
template <typename Entry>
struct WheelLink {
    Entry* previous = nullptr;
    Entry* next = nullptr;
    std::size_t slot = 0;
    bool waiting = false;
};

/// Entries that are to be looked at some ticks from now. Adding and removing take constant time,
/// and a round looks at so many of those that are due and leaves the rest for the next one, so that
/// many that are due at once hold nothing up. Owns nothing, allocates nothing.
template <typename Entry>
class TimerWheel {
  public:
    /// The farthest that an entry can wait.
    static constexpr std::uint64_t kTicks = 512;

    explicit TimerWheel(std::uint64_t now) : next_tick_{now} {}

    /// Precondition: the entry does not wait. It is due in at least one tick.
    void add(Entry& entry, std::uint64_t ticks) noexcept {
        const std::uint64_t wait = std::clamp<std::uint64_t>(ticks, 1, kTicks - 1);
        WheelLink<Entry>& link = entry.timer;
        link.slot = static_cast<std::size_t>((next_tick_ + wait) % kTicks);
        link.previous = nullptr;
        link.next = slots_[link.slot];
        if (link.next != nullptr) {
            link.next->timer.previous = &entry;
        }
        slots_[link.slot] = &entry;
        link.waiting = true;
    }

    void remove(Entry& entry) noexcept {
        WheelLink<Entry>& link = entry.timer;
        if (!link.waiting) {
            return;
        }
        (link.previous == nullptr ? slots_[link.slot] : link.previous->timer.next) = link.next;
        if (link.next != nullptr) {
            link.next->timer.previous = link.previous;
        }
        link = {};
    }

    /// Takes out what is due at tick `now` or before, `max` entries at most, and shows each to
    /// `visit(Entry&)`, which may add it again. Returns whether all that was due has been seen.
    template <typename Visit>
    bool advance(std::uint64_t now, std::size_t max, Visit&& visit) {
        for (; next_tick_ <= now; ++next_tick_) {
            const auto slot = static_cast<std::size_t>(next_tick_ % kTicks);
            while (slots_[slot] != nullptr) {
                if (max-- == 0) {
                    return false;
                }
                Entry& entry = *slots_[slot];
                remove(entry);
                visit(entry);
            }
        }
        return true;
    }

  private:
    std::array<Entry*, kTicks> slots_{};
    std::uint64_t next_tick_; ///< everything before it has been seen
};

struct Session;
class SessionTable;

/// A session's place in the list of those of its standing, oldest first.
struct RankLink {
    Session* older = nullptr;
    Session* newer = nullptr;
};

/// A client, and the socket its datagrams reach the server by.
struct Session {
    SessionTable* door = nullptr;         ///< of its server and thread
    UpstreamFactory* upstreams = nullptr; ///< of its server
    Upstream upstream;
    TapSession tap;
    base::SocketAddress client{}; ///< where replies go
    socklen_t client_length = 0;
    ListenerIndex listener = 0; ///< by which socket
    std::uint8_t control_length = 0;
    Control control{}; ///< from which of our addresses, where a socket has several

    Standing standing = Standing::player;
    bool has_place = false; ///< it counts against max_sessions
    bool leaving = false;   ///< closed, and freed as soon as nothing points at it
    bool active = true;     ///< a datagram passed since the last look at it
    bool answered = false;  ///< the server has said anything to it
    ProofMemory proof;
    ResyncTurn resync;
    TokenBucket budget{0, 0};      ///< of datagrams to the server
    std::uint32_t number = 0;      ///< from 1; also of those nobody hears of (see SessionTable)
    base::Timestamp opened = 0;    ///< when its first datagram came
    base::Clock::time_point begun; ///< the same, and with a rise above `connless`
    base::Clock::time_point last_active; ///< as of the look that saw it
    std::uint32_t last_heard_ms = 0;     ///< the client's last datagram
    std::uint32_t last_answer_ms = 0;    ///< the server's last, or when it began
    std::uint32_t played_ms =
        0; ///< when the server last showed that it plays with it, or when it began
    std::uint8_t repeats = 0; ///< how often it had knocked in a client's rhythm when it was let in
    Question asked;           ///< its last, while it is connless
    std::uint32_t kernel_drops = 0;        ///< as last read
    std::unique_ptr<HeldCopies> held;      ///< until the observer hears of it
    std::unique_ptr<SessionLines> lines{}; ///< while lines are impaired

    WheelLink<Session> timer;
    RankLink rank;
    std::size_t index = 0;                   ///< in the table
    std::unique_ptr<Session> next_leaving{}; ///< behind it in the list of those that left

    /// The session's datagrams in the batch at hand: a chain through Forwarder::next_.
    std::uint8_t first = 0;
    std::uint8_t last = 0;
    std::uint8_t count = 0;

    /// Whether the observer is told.
    [[nodiscard]] bool is_told() const noexcept { return tap.id != 0; }

    /// Makes a message go to the client, from the address it sent to.
    void address_reply(msghdr& header) noexcept {
        header.msg_name = &client;
        header.msg_namelen = client_length;
        header.msg_control = control_length != 0 ? control.data() : nullptr;
        header.msg_controllen = control_length;
    }
};

/// Bad lines hold something of it back.
[[nodiscard]] inline bool has_waiting_datagrams(const Session& session) noexcept {
    return session.lines != nullptr && session.lines->waiting != 0;
}

/// Sessions of one standing, oldest first. Owns nothing.
class RankList {
  public:
    void push(Session& session) noexcept;
    void remove(Session& session) noexcept;

    [[nodiscard]] Session* oldest() const noexcept { return oldest_; }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    Session* oldest_ = nullptr;
    Session* newest_ = nullptr;
    std::size_t size_ = 0;
};

/// Sessions by client address. Finding allocates nothing.
class Sessions {
  public:
    static constexpr std::uint32_t kSilentMs = 2000;

    explicit Sessions(std::size_t expected);

    [[nodiscard]] Session* find(const base::Endpoint& client, ListenerIndex listener) noexcept;
    /// Where there is no memory for it, it stays with the caller.
    Session& insert(std::unique_ptr<Session>&& session);
    /// Takes one out, and its place with it.
    [[nodiscard]] std::unique_ptr<Session> remove(Session& session);
    /// Moves one to the list of that standing.
    void rank(Session& session, Standing standing) noexcept;
    /// It counts for its address from now on; where there is no memory for that, it has no place.
    void give_place(Session& session);

    /// Those of a standing; stray and unproven ones are in one list.
    [[nodiscard]] const RankList& of(Standing standing) const noexcept {
        return ranks_[place_of(standing)];
    }

    /// The one of that standing that has been silent for longest, and for kSilentMs at least; null
    /// where all speak. A player is never silent for so long.
    [[nodiscard]] Session* most_silent(Standing standing, std::uint32_t now_ms) const noexcept;

    /// How many with a place a network has. Who only asks has none: anyone can ask in its name.
    [[nodiscard]] std::size_t count_of(const base::Network& network) const noexcept {
        return counts_of(network).places;
    }

    /// How many of that standing a network has: stray and unproven ones together, or verified ones.
    [[nodiscard]] std::size_t count_of(const base::Network& network,
                                       Standing standing) const noexcept {
        const Counts counts = counts_of(network);
        return standing == Standing::verified ? counts.verified : counts.unproven;
    }

    template <typename Use>
    void for_each(Use&& use) {
        for (const auto& session : all_) {
            use(*session);
        }
    }

    [[nodiscard]] Session* any() noexcept { return all_.empty() ? nullptr : all_.back().get(); }

    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

  private:
    struct Key {
        std::uint64_t high;
        std::uint64_t low;
        std::uint64_t rest;

        friend bool operator==(const Key&, const Key&) = default;
    };

    struct Hash {
        base::KeyedHash hash;
        using is_avalanching = void; // NOLINT(readability-identifier-naming): Boost asks for it

        [[nodiscard]] std::size_t operator()(const Key& key) const noexcept {
            return hash(key.rest, key.high, key.low);
        }

        [[nodiscard]] std::size_t operator()(const base::Network& network) const noexcept {
            return hash(network);
        }
    };

    /// What one network has.
    struct Counts {
        std::uint32_t places = 0;
        std::uint32_t unproven = 0;
        std::uint32_t verified = 0;

        /// Null for a standing that is not counted.
        [[nodiscard]] std::uint32_t* of(Standing standing) noexcept;
    };

    [[nodiscard]] Counts counts_of(const base::Network& network) const noexcept;
    /// Counts a session with a place for all of its networks, or for none where there is no memory.
    void count_in(const Session& session);
    void count_out(const Session& session, std::size_t networks) noexcept;

    [[nodiscard]] static Key key_of(const base::Endpoint& client, ListenerIndex listener) noexcept;

    [[nodiscard]] static std::size_t place_of(Standing standing) noexcept {
        return static_cast<std::size_t>(standing == Standing::stray ? Standing::unproven
                                                                    : standing);
    }

    boost::unordered_flat_map<Key, Session*, Hash> by_client_;
    boost::unordered_flat_map<base::Network, Counts, Hash> by_network_;
    std::vector<std::unique_ptr<Session>> all_;
    std::array<RankList, 6> ranks_;
};

} // namespace tw::relay
