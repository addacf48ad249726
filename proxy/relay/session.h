#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/endpoint.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/datagram_copier.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/new_client_filter.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"
#include "proxy/relay/upstream.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/intrusive/list.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

namespace tw::relay {

class SessionTable;

/// A copy of a datagram, which is stored until the observer is told about the session.
struct DatagramCopy {
    base::Timestamp time = 0;
    Direction direction = Direction::c2s;
    std::vector<std::byte> bytes;
};

/// The members of a Session that a takeover passes on unchanged. Times are those of base::Clock,
/// which all processes of a machine share.
struct TransferredSessionData {
    /// The source address of replies, if the listening socket receives at several addresses.
    ReplyControl control{};
    std::uint8_t control_length = 0;
    ClientStanding standing = ClientStanding::player;
    bool counts_against_limit = false; ///< true if the session counts against max_sessions
    bool has_server_answered = false;  ///< true if the server has sent a datagram to the client
    bool is_active = true; ///< true if a datagram was forwarded since the last timer check
    RememberedHandshakes handshake;
    std::uint32_t number = 0; ///< number from 1, on which the session's simulated network depends
    base::Timestamp opened_at = 0; ///< when the client's first datagram came
    /// How often the client repeated its first datagram before the session began.
    std::uint8_t num_repeats = 0;
    /// The kernel's drop counter of the upstream socket when it was last read.
    std::uint32_t kernel_drops = 0;
    /// When the session began, or was promoted from `connless`.
    base::Clock::time_point began_at;
    /// When a timer check last found the session active.
    base::Clock::time_point last_active;
    std::uint32_t last_heard_ms = 0; ///< when the client's latest datagram came
    /// When the server last showed that the client is playing, or when the session began.
    std::uint32_t last_play_ms = 0;
};

/// The state of a session that another relay continues. The upstream socket is passed separately.
struct HandedOverSession {
    TransferredSessionData facts;
    base::Endpoint client;
    base::Endpoint server; ///< the address that the upstream socket is connected to
    /// The session's number in the observer's events; 0 if the observer does not know the session.
    std::uint32_t id = 0;
    std::uint32_t listener = 0; ///< index of the listening socket (Relay::listening_sockets)
    std::vector<DatagramCopy> held_copies;           ///< see Session::held_copies
    std::array<std::uint64_t, 2> lost_held_copies{}; ///< see HeldDatagramCopies::lost_counts()
};

/// The state of a server that is handed over to another relay.
struct HandedOverServer {
    Counters counters;
    /// For each listening socket: the kernel's drop counter when it was last read.
    std::vector<std::uint32_t> listener_drops;
    std::vector<HandedOverSession> sessions;
};

/// The data that a relay hands over to another relay.
struct HandedOverState {
    std::uint32_t last_observed_id = 0; ///< the highest HandedOverSession::id assigned so far
    std::uint32_t last_number = 0; ///< the highest TransferredSessionData::number assigned so far
    std::string impairment;        ///< text for parse_impairment()
    std::uint64_t impairment_seed = 0;
    std::vector<HandedOverServer> servers;
};

/// A client's session, with its upstream socket to the server.
struct Session : TransferredSessionData {
    SessionTable* table = nullptr;        ///< the table that the session is in
    UpstreamFactory* upstreams = nullptr; ///< the factory of the session's server
    UpstreamSocket upstream;
    ObservedSession observed;
    base::SocketAddress client{}; ///< the client's address
    socklen_t client_length = 0;
    ListenerIndex listener = 0; ///< the index of the listening socket that the client sends to
    /// True if the session is closed. A closed session is freed when none of its datagrams waits.
    bool is_closed = false;
    ResyncState resync;
    TokenBucket send_budget{0}; ///< limits the datagrams that the relay forwards to the server
    /// When the server's latest datagram to the client came, or when the session began.
    std::uint32_t last_answer_ms = 0;
    /// The client's latest request, if the session is connectionless.
    ClientQuestion latest_question;
    /// Copies of the session's datagrams until the observer knows the session; null afterwards.
    std::unique_ptr<HeldDatagramCopies> held_copies;
    std::unique_ptr<SessionImpairment> impairment{}; ///< null if no impairment is set

    /// Links the session into SessionTimers::open_sessions_, until the session is closed.
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
        timer_hook;
    base::Clock::time_point check_at; ///< when the session is next checked for a timeout
    /// Links the session into the list of its standing.
    boost::intrusive::list_member_hook<> standing_hook;
    std::size_t index = 0; ///< index of the session in SessionIndex::all_
    /// The next session in SessionTimers::closed_.
    std::unique_ptr<Session> next_closed{};

    /// The indices of the session's first and last datagram in the current batch, and the number of
    /// its datagrams. Forwarder::next_of_session_ links them.
    std::uint8_t first_datagram = 0;
    std::uint8_t last_datagram = 0;
    std::uint8_t num_datagrams = 0;

    [[nodiscard]] bool is_announced() const noexcept { return observed.id != 0; }

    /// Sets the destination and source address of a message to the client.
    void set_reply_address(msghdr& header) noexcept {
        header.msg_name = &client;
        header.msg_namelen = client_length;
        header.msg_control = control_length != 0 ? control.data() : nullptr;
        header.msg_controllen = control_length;
    }
};

/// Returns whether delayed datagrams of the session are waiting.
[[nodiscard]] inline bool has_waiting_datagrams(const Session& session) noexcept {
    return session.impairment != nullptr && session.impairment->num_waiting != 0;
}

/// A list of the sessions that have the same standing, oldest first. Owns nothing.
using SessionsByAge =
    boost::intrusive::list<Session,
                           boost::intrusive::member_hook<Session, decltype(Session::standing_hook),
                                                         &Session::standing_hook>>;

/// Owns the sessions of a SessionTable, finds them by client address, and counts them by network.
/// find() does not allocate.
class SessionIndex {
  public:
    /// A client is silent if it has sent nothing for this long. A connected game client sends more
    /// often.
    static constexpr std::uint32_t kSilentMs = 2000;

    explicit SessionIndex(std::size_t expected);

    [[nodiscard]] Session* find(const base::Endpoint& client, ListenerIndex listener) noexcept;
    /// Adds a session. If this throws std::bad_alloc, `session` is unchanged.
    Session& insert(std::unique_ptr<Session>&& session);
    /// Removes a session and lowers the counters of its networks. Sets the session's member
    /// counts_against_limit to false.
    [[nodiscard]] std::unique_ptr<Session> remove(Session& session);
    /// Sets a session's standing and moves the session to that standing's list.
    void set_standing(Session& session, ClientStanding standing) noexcept;
    /// Sets Session::counts_against_limit and counts the session for its networks. If this throws
    /// std::bad_alloc, nothing changes.
    void count_against_limit(Session& session);

    /// Returns the sessions of a standing. Unrecognised and unverified sessions share a list.
    [[nodiscard]] SessionsByAge& sessions_of_standing(ClientStanding standing) noexcept {
        return by_standing_[list_index_of(standing)];
    }

    /// Returns the session of that standing whose client has been silent longest; null if no client
    /// has been silent for kSilentMs.
    [[nodiscard]] Session* find_most_silent_session(ClientStanding standing,
                                                    std::uint32_t now_ms) noexcept;

    /// Returns the number of a network's sessions that count against max_sessions. Connectionless
    /// sessions do not count, because their sender addresses can be forged.
    [[nodiscard]] std::size_t
    num_sessions_against_limit(const base::Network& network) const noexcept {
        return counts_of(network).against_limit;
    }

    /// Returns the number of a network's verified sessions, or of its unrecognised and unverified
    /// sessions together. `standing`: `verified` or `unverified`.
    [[nodiscard]] std::size_t num_sessions(const base::Network& network,
                                           ClientStanding standing) const noexcept {
        const NetworkSessionCounts counts = counts_of(network);
        return standing == ClientStanding::verified ? counts.verified : counts.unverified;
    }

    template <typename Visit>
    void for_each_session(Visit&& visit) {
        for (const auto& session : all_) {
            visit(*session);
        }
    }

    /// Returns any session; null if the table is empty.
    [[nodiscard]] Session* any_session() noexcept {
        return all_.empty() ? nullptr : all_.back().get();
    }

  private:
    /// A client's address and port, and the index of the listening socket that it sends to.
    struct ClientKey {
        std::uint64_t high;
        std::uint64_t low;
        std::uint64_t rest;

        friend bool operator==(const ClientKey&, const ClientKey&) = default;
    };

    struct KeyHash {
        base::KeyedHash hash;
        using is_avalanching = void; // NOLINT(readability-identifier-naming): Boost's name

        [[nodiscard]] std::size_t operator()(const ClientKey& key) const noexcept {
            return hash(key.rest, key.high, key.low);
        }

        [[nodiscard]] std::size_t operator()(const base::Network& network) const noexcept {
            return hash(network);
        }
    };

    struct NetworkSessionCounts {
        std::uint32_t against_limit = 0; ///< sessions that count against max_sessions
        std::uint32_t unverified = 0;
        std::uint32_t verified = 0;

        /// Returns the counter for this standing; null if the standing is not counted.
        [[nodiscard]] std::uint32_t* counter_of(ClientStanding standing) noexcept;
    };

    [[nodiscard]] NetworkSessionCounts counts_of(const base::Network& network) const noexcept;
    /// Counts a session for all of its networks. If it throws std::bad_alloc, no counter changes.
    void add_to_counts(const Session& session);
    void remove_from_counts(const Session& session, std::size_t networks) noexcept;

    [[nodiscard]] static ClientKey key_of(const base::Endpoint& client,
                                          ListenerIndex listener) noexcept;

    [[nodiscard]] static std::size_t list_index_of(ClientStanding standing) noexcept {
        return static_cast<std::size_t>(
            standing == ClientStanding::unrecognised ? ClientStanding::unverified : standing);
    }

    boost::unordered_flat_map<ClientKey, Session*, KeyHash> by_client_;
    boost::unordered_flat_map<base::Network, NetworkSessionCounts, KeyHash> by_network_;
    std::vector<std::unique_ptr<Session>> all_;
    std::array<SessionsByAge, 6> by_standing_;
};

} // namespace tw::relay
