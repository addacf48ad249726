#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/listen_socket.h"
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

#include <boost/intrusive/list.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

namespace tw::relay {

/// Links an entry into a TimerWheel; the entry's member `timer` has this type. Destroying the entry
/// removes it from the wheel.
using WheelHook =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// Schedules entries some ticks ahead. Adding and removing take constant time. Each advance()
/// handles a bounded number of due entries and leaves the rest for the next call. Owns nothing and
/// allocates nothing.
template <typename Entry>
class TimerWheel {
  public:
    /// The number of slots. An entry waits for less than this many ticks.
    static constexpr std::uint64_t kTicks = 512;

    explicit TimerWheel(std::uint64_t now) : next_tick_{now} {}

    /// Schedules an entry `ticks` ahead: at least 1, at most kTicks - 1. Precondition: the entry is
    /// not scheduled.
    void add(Entry& entry, std::uint64_t ticks) noexcept {
        const std::uint64_t wait = std::clamp<std::uint64_t>(ticks, 1, kTicks - 1);
        slots_[static_cast<std::size_t>((next_tick_ + wait) % kTicks)].push_front(entry);
    }

    void remove(Entry& entry) noexcept { entry.timer.unlink(); }

    /// Removes up to `max` entries that are due at tick `now` and calls `visit(Entry&)` for each,
    /// which may add the entry again. Returns whether no due entry is left.
    template <typename Visit>
    bool advance(std::uint64_t now, std::size_t max, Visit&& visit) {
        for (; next_tick_ <= now; ++next_tick_) {
            auto& due = slots_[static_cast<std::size_t>(next_tick_ % kTicks)];
            while (!due.empty()) {
                if (max-- == 0) {
                    return false;
                }
                Entry& entry = due.front();
                due.pop_front();
                visit(entry);
            }
        }
        return true;
    }

  private:
    using Slot =
        boost::intrusive::list<Entry,
                               boost::intrusive::member_hook<Entry, WheelHook, &Entry::timer>,
                               boost::intrusive::constant_time_size<false>>;

    std::array<Slot, kTicks> slots_{};
    std::uint64_t next_tick_; ///< the first tick that still has entries to visit
};

class SessionTable;

/// A client's session, with its upstream socket to the server.
struct Session {
    SessionTable* table = nullptr;        ///< the table of the session's server and thread
    UpstreamFactory* upstreams = nullptr; ///< the factory of the session's server
    Upstream upstream;
    TapSession tap;
    base::SocketAddress client{}; ///< the client's address
    socklen_t client_length = 0;
    ListenerIndex listener = 0; ///< the listening socket that the client sends to
    std::uint8_t control_length = 0;
    /// Source address of replies, if the listening socket has several addresses.
    ReplyControl control{};

    Standing standing = Standing::player;
    bool counts_against_limit = false; ///< the session counts against max_sessions
    bool closed = false;   ///< the session is closed; it is freed when nothing refers to it
    bool active = true;    ///< a datagram was forwarded since the last timer check
    bool answered = false; ///< the server has sent something to the client
    ProofMemory proof;
    ResyncState resync;
    TokenBucket budget{0, 0};   ///< limits datagrams to the server
    std::uint32_t number = 0;   ///< from 1; also set for unannounced sessions (see SessionTable)
    base::Timestamp opened = 0; ///< when the client's first datagram came
    /// When the session began; reset when the session is promoted from `connless`.
    base::Clock::time_point begun;
    /// Time of the last timer check that found the session active.
    base::Clock::time_point last_active;
    std::uint32_t last_heard_ms = 0; ///< when the client last sent something
    /// When the server last sent something, or when the session began.
    std::uint32_t last_answer_ms = 0;
    /// When the server last showed that the client is playing, or when the session began.
    std::uint32_t played_ms = 0;
    /// How often the client repeated its first datagram before it was admitted.
    std::uint8_t repeats = 0;
    Question asked; ///< the last request, if the session is connectionless
    /// The upstream socket's count of datagrams that the kernel dropped, as last read.
    std::uint32_t kernel_drops = 0;
    /// The copies of datagrams that came before the session is announced; null afterwards.
    std::unique_ptr<HeldCopies> held;
    std::unique_ptr<SessionImpairment> lines{}; ///< null if no impairment is set

    WheelHook timer;
    boost::intrusive::list_member_hook<> rank; ///< position among the sessions of its standing
    std::size_t index = 0;                     ///< index in the session table
    /// The next session in SessionTimers' list of closed sessions.
    std::unique_ptr<Session> next_closed{};

    /// The session's datagrams in the current batch, linked by Forwarder::next_.
    std::uint8_t first = 0;
    std::uint8_t last = 0;
    std::uint8_t count = 0;

    /// Whether the session was announced to the observer.
    [[nodiscard]] bool is_announced() const noexcept { return tap.id != 0; }

    /// Sets the destination and source address of a message to the client.
    void address_reply(msghdr& header) noexcept {
        header.msg_name = &client;
        header.msg_namelen = client_length;
        header.msg_control = control_length != 0 ? control.data() : nullptr;
        header.msg_controllen = control_length;
    }
};

/// Whether an impairment still delays datagrams of the session.
[[nodiscard]] inline bool has_waiting_datagrams(const Session& session) noexcept {
    return session.lines != nullptr && session.lines->waiting != 0;
}

/// The sessions of one standing, oldest first. Owns nothing.
using RankList = boost::intrusive::list<
    Session, boost::intrusive::member_hook<Session, decltype(Session::rank), &Session::rank>>;

/// The sessions of a table, by client address. find() does not allocate.
class Sessions {
  public:
    /// A client that sent nothing for this long is silent. Clients of players send more often.
    static constexpr std::uint32_t kSilentMs = 2000;

    explicit Sessions(std::size_t expected);

    [[nodiscard]] Session* find(const base::Endpoint& client, ListenerIndex listener) noexcept;
    /// Adds a session. If that throws std::bad_alloc, the caller keeps the session.
    Session& insert(std::unique_ptr<Session>&& session);
    /// Removes a session and no longer counts it in its networks or against max_sessions.
    [[nodiscard]] std::unique_ptr<Session> remove(Session& session);
    /// Sets a session's standing and moves the session to the list of that standing.
    void set_standing(Session& session, Standing standing) noexcept;
    /// Sets counts_against_limit and counts the session for its networks. If that throws std::bad_alloc, the
    /// session has no place.
    void count_against_limit(Session& session);

    /// The sessions of a standing; stray and unproven sessions share a list.
    [[nodiscard]] RankList& of(Standing standing) noexcept { return ranks_[rank_index(standing)]; }

    /// The session of that standing whose client has been silent for longest; null if none has been
    /// silent for kSilentMs.
    [[nodiscard]] Session* most_silent(Standing standing, std::uint32_t now_ms) noexcept;

    /// The number of a network's sessions that have a place. Connectionless sessions have no place,
    /// because anyone can forge their sender addresses.
    [[nodiscard]] std::size_t count_of(const base::Network& network) const noexcept {
        return counts_of(network).places;
    }

    /// The number of a network's sessions of that standing: stray and unproven ones together, or
    /// verified ones.
    [[nodiscard]] std::size_t count_of(const base::Network& network,
                                       Standing standing) const noexcept {
        const NetworkCounts counts = counts_of(network);
        return standing == Standing::verified ? counts.verified : counts.unproven;
    }

    template <typename Use>
    void for_each(Use&& use) {
        for (const auto& session : all_) {
            use(*session);
        }
    }

    /// Returns any session; null if there is none.
    [[nodiscard]] Session* any_session() noexcept {
        return all_.empty() ? nullptr : all_.back().get();
    }

    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

  private:
    /// The client's address, port and listening socket.
    struct ClientKey {
        std::uint64_t high;
        std::uint64_t low;
        std::uint64_t rest;

        friend bool operator==(const ClientKey&, const ClientKey&) = default;
    };

    struct AddressHash {
        base::KeyedHash hash;
        using is_avalanching = void; // NOLINT(readability-identifier-naming): Boost asks for it

        [[nodiscard]] std::size_t operator()(const ClientKey& key) const noexcept {
            return hash(key.rest, key.high, key.low);
        }

        [[nodiscard]] std::size_t operator()(const base::Network& network) const noexcept {
            return hash(network);
        }
    };

    /// The numbers of sessions of one network.
    struct NetworkCounts {
        std::uint32_t places = 0;
        std::uint32_t unproven = 0;
        std::uint32_t verified = 0;

        /// The counter of this standing; null for a standing that is not counted.
        [[nodiscard]] std::uint32_t* of(Standing standing) noexcept;
    };

    [[nodiscard]] NetworkCounts counts_of(const base::Network& network) const noexcept;
    /// Counts a session with a place for all of its networks. If that throws std::bad_alloc, the
    /// session is counted for none of them.
    void add_to_counts(const Session& session);
    void remove_from_counts(const Session& session, std::size_t networks) noexcept;

    [[nodiscard]] static ClientKey key_of(const base::Endpoint& client,
                                          ListenerIndex listener) noexcept;

    [[nodiscard]] static std::size_t rank_index(Standing standing) noexcept {
        return static_cast<std::size_t>(standing == Standing::stray ? Standing::unproven
                                                                    : standing);
    }

    boost::unordered_flat_map<ClientKey, Session*, AddressHash> by_client_;
    boost::unordered_flat_map<base::Network, NetworkCounts, AddressHash> by_network_;
    std::vector<std::unique_ptr<Session>> all_;
    std::array<RankList, 6> ranks_;
};

} // namespace tw::relay
