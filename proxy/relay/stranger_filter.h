#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/relay/ring.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

namespace tw::relay {

/// How far a client's connection has got, and so which resources it may use. Later values mean more
/// trust. A session's standing never falls.
enum class Standing : std::uint8_t {
    /// The client only sent requests without a connection. Such sessions have their own pool and are
    /// not announced to the observer.
    connless,
    /// The client sent datagrams that begin no connection. Like `unproven`, but not admitted while
    /// there are too many new clients.
    stray,
    unproven, ///< the client began a handshake; the session has a limited lifetime, may be evicted
    /// The client's address is verified, but the server does not play with the client; may be
    /// evicted.
    verified,
    /// The server plays with the client, but the client's address is not verified; may be evicted when
    /// the client is silent.
    weak,
    /// The client's address is verified, and the server plays with the client; not evicted while the
    /// server does so.
    player,
};

/// What a datagram without a connection requests.
enum class Request : std::uint8_t {
    none,   ///< the datagram is not a request
    common, ///< a request for server info, which anyone sends often
    /// A request that is sent rarely, such as a master server's. Reserved requests have a rate
    /// limit of their own (reserved_rate).
    reserved,
    other,
};

/// The meaning of a datagram, as found by a Prove function.
struct Verdict {
    Standing standing = Standing::connless; ///< the session's standing after the datagram
    Request request = Request::none;        ///< what a client's datagram requests
    bool is_answered = false;               ///< a client's datagram: servers usually answer it
    bool is_play = false; ///< a server's datagram: it shows that the client has a slot
};

/// What a Prove function remembers about one session. Zeroed memory is the initial state.
struct ProofMemory {
    alignas(8) std::array<std::byte, 64> bytes{};
};

/// A function that examines the datagrams of a session, in order. Until the session's standing is
/// `player`, it gets all datagrams; afterwards, only some of the server's. It gets the first datagram
/// before the session is created. It must not block or allocate.
using Prove = Verdict (*)(ProofMemory& memory, Direction direction,
                          std::span<const std::byte> datagram);

/// Limits for new clients and for requests without a connection. The defaults fit a game whose
/// handshake takes a second and whose clients send a hundred datagrams a second.
struct AdmissionLimits {
    /// The longest time for a handshake, including repetitions; then an unproven session is closed.
    std::chrono::milliseconds unproven_time{3000};
    /// A connectionless session is closed this long after its last request. Until then, the answer can
    /// arrive.
    std::chrono::milliseconds connless_time{2000};
    /// An unproven session is not evicted for at least this long: the longest round trip with which a
    /// client can still connect.
    std::chrono::milliseconds least_time{250};
    /// A client without an answer repeats its datagram after earliest_repetition to latest_repetition.
    /// While there are too many new clients, only clients that do so are admitted.
    std::chrono::milliseconds earliest_repetition{450};
    std::chrono::milliseconds latest_repetition{600};
    /// While there are too many new clients, a client that was admitted but not verified is
    /// admitted again after this time.
    std::chrono::milliseconds second_chance{30'000};
    /// If the server answers other clients but sends nothing to this client for this long, the client's
    /// session may be evicted. Servers send at least one datagram a second to each player.
    std::chrono::milliseconds forgotten_time{3000};
    /// Datagrams that would begin a session, per network (see Network) and second; also the burst.
    std::uint32_t strangers_rate = 256;
    /// Requests per network: rate per second, and burst.
    std::uint32_t requests_rate = 4;
    std::uint32_t requests_burst = 16;
    /// Limits for the common requests of all clients together, per second, while a recent answer is
    /// stored. asked_rate: how many are forwarded to the server. repeated_rate: how many more get the
    /// stored answer.
    std::uint32_t asked_rate = 32;
    std::uint32_t repeated_rate = 4000;
    /// The limit for the reserved requests of all clients together, per second.
    std::uint32_t reserved_rate = 32;
    /// Verified sessions announced before the server plays with them: rate per second, and burst.
    std::uint32_t verified_rate = 8;
    std::uint32_t verified_burst = 64;
    /// Datagrams that one session may send to the server, per second. session_rate: if the server plays
    /// with the client. unproven_rate: if not.
    std::uint32_t session_rate = 10'000;
    std::uint32_t unproven_rate = 128;
    /// Sessions per IPv4 address or IPv6 /64, except loopback; 0: unlimited. See AdmissionPools.
    std::size_t max_per_address = 64;
};

/// The most sessions of each standing in one relay thread, derived from max_sessions.
struct AdmissionPools {
    std::size_t unproven; ///< includes stray sessions
    std::size_t verified;
    std::size_t connless;
    std::size_t weak;
    std::size_t per_address; ///< the most sessions with a place per address; 0: unlimited

    AdmissionPools(std::size_t max_sessions, std::size_t threads, std::size_t max_per_address = 0)
        : unproven{part(max_sessions, 4 * threads)}, verified{part(max_sessions, 8 * threads)},
          connless{std::clamp<std::size_t>(max_sessions / 16 / threads, 4, 256)}, weak{part(
                                                                                      max_sessions,
                                                                                      2 * threads)},
          per_address{std::min(max_per_address, part(max_sessions, 2 * threads))} {}

    /// The most sessions of a pool that one network may have. A wider network may have more, because
    /// more customers share it.
    [[nodiscard]] static std::size_t share(std::size_t pool,
                                           const base::Network& network) noexcept {
        const std::size_t parts = network.width == 0 ? 8 : network.width == 1 ? 4 : 2;
        return part(pool, parts);
    }

  private:
    [[nodiscard]] static std::size_t part(std::size_t all, std::size_t of) noexcept {
        return std::max<std::size_t>(all / of, 1);
    }
};

/// A client's request without a connection. Questions of the same kind get the same answer, except
/// that the answer contains the token of the question.
struct Question {
    /// The kind of question, less than kMaxQuestions; 0: the relay does not repeat its answer.
    std::uint8_t kind = 0;
    std::uint32_t token = 0;
};

inline constexpr std::size_t kMaxQuestions = 4;

/// The place of one datagram in the server's answer to a question.
struct AnswerPart {
    bool is_first = false;
};

/// Functions with which the relay answers one client's question with the server's answer to another
/// client. The caller supplies them, because the relay does not know the game's format. They must not
/// block or allocate.
struct AnswerFunctions {
    /// Returns the question in a client's datagram.
    Question (*read_question)(std::span<const std::byte> datagram) = nullptr;
    /// Returns which part of the answer to the question a server's datagram is; nullopt if it is none.
    std::optional<AnswerPart> (*read_answer)(std::span<const std::byte> datagram,
                                             const Question& question) = nullptr;
    /// Rewrites a part of an answer for another question of the same kind. Returns the number of bytes
    /// written; 0 if that is not possible.
    std::size_t (*write_answer)(std::span<const std::byte> part, const Question& question,
                                std::span<std::byte> out) = nullptr;
};

/// The server's last complete answer to each kind of question. Memory use is fixed.
class AnswerCache {
  public:
    /// Enough parts for a full server of 128 players.
    static constexpr std::size_t kMaxParts = 8;
    /// The most bytes of a part. If a part is longer, the answer is not stored.
    static constexpr std::size_t kMaxBytes = 1400;
    /// The greatest age of an answer that the relay still repeats.
    static constexpr std::uint32_t kMaxAgeMs = 1000;
    /// The longest time between the first and the last part of an answer.
    static constexpr std::uint32_t kMaxPartsMs = 30;

    /// An answer of the server to a question.
    struct Answer {
        struct Part {
            std::uint16_t size = 0;
            std::array<std::byte, kMaxBytes> bytes; // NOLINT(*-member-init): as far as it is used
        };

        std::uint32_t began_ms = 0; ///< when the first part was received
        /// Number of the session that received the answer; 0: there is no answer.
        std::uint32_t asker = 0;
        std::uint8_t num_parts = 0; ///< kMaxParts + 1: too many parts to store
        std::array<Part, kMaxParts> parts;

        [[nodiscard]] std::span<const std::byte> part(std::size_t i) const noexcept {
            return std::span{parts[i].bytes}.first(parts[i].size);
        }
    };

    /// Stores a part of the answer to a question of this kind that session `asker` received.
    void add(std::uint8_t kind, std::uint32_t asker, const AnswerPart& part,
             std::span<const std::byte> datagram, std::uint32_t now_ms) noexcept;

    /// Returns the last complete answer; null if it is missing or too old.
    [[nodiscard]] const Answer* find(std::uint8_t kind, std::uint32_t now_ms) noexcept;

  private:
    /// The current answer, and one whose parts are still being received.
    struct AnswerPair {
        std::array<Answer, 2> answers;
        std::uint8_t current = 0; ///< index of the current answer
    };

    static void replace_current(AnswerPair& pair, std::uint32_t now_ms) noexcept;

    std::unique_ptr<std::array<AnswerPair, kMaxQuestions>> pairs_ =
        std::make_unique<std::array<AnswerPair, kMaxQuestions>>();
};

/// How little of a resource is left: at least half (`none`), or less than a half, a quarter or an
/// eighth.
enum class Scarcity : std::uint8_t { none, half, quarter, eighth };

[[nodiscard]] constexpr Scarcity scarcity_of(std::uint32_t left, std::uint32_t capacity) noexcept {
    const std::uint64_t eightfold = std::uint64_t{left} * 8;
    return eightfold < capacity                      ? Scarcity::eighth
           : eightfold < std::uint64_t{capacity} * 2 ? Scarcity::quarter
           : eightfold < std::uint64_t{capacity} * 4 ? Scarcity::half
                                                     : Scarcity::none;
}

/// A token bucket with millisecond resolution.
class TokenBucket {
  public:
    /// Starts full. `rate`: tokens per second; 0: unlimited.
    TokenBucket(std::uint32_t rate, std::uint32_t capacity) noexcept
        : rate_{rate}, capacity_{capacity}, tokens_{capacity} {}

    [[nodiscard]] bool take(std::uint32_t now_ms) noexcept {
        if (tokens_ == 0) {
            refill(now_ms);
        }
        if (tokens_ == 0) {
            return rate_ == 0;
        }
        --tokens_;
        return true;
    }

    void refill(std::uint32_t now_ms) noexcept {
        const std::uint64_t due = std::uint64_t{now_ms - filled_ms_} * rate_ / 1000;
        if (due != 0) { // if 0, the time since then counts for the next token
            tokens_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens_ + due, capacity_));
            filled_ms_ = now_ms;
        }
    }

    [[nodiscard]] std::uint32_t rate() const noexcept { return rate_; }

    [[nodiscard]] Scarcity scarcity() const noexcept { return scarcity_of(tokens_, capacity_); }

  private:
    std::uint32_t rate_;
    std::uint32_t capacity_;
    std::uint32_t tokens_;
    std::uint32_t filled_ms_ = 0;
};

/// Why a new client's datagram is rejected.
enum class Refusal : std::uint8_t {
    none,
    flood, ///< too many datagrams from the client's network
    crowd, ///< too many new clients, and this one did not repeat its datagram as a client does
};

/// The decision about a datagram that would begin a session.
struct AdmissionDecision {
    Refusal refusal = Refusal::none;
    /// How often the client has repeated the datagram in the usual interval (see AdmissionLimits).
    std::uint8_t repeats = 0;
};

/// The decision about a request without a connection.
enum class RequestDecision : std::uint8_t {
    server, ///< forward the request to the server
    repeat, ///< answer the request with the server's last answer
    flood,  ///< reject the request: too many from the client's network
    crowd,  ///< reject the request: too many from all clients
};

/// Decides which datagrams of unknown clients may begin a session, so that floods do not slow down
/// other sessions and real clients still get in.
///
/// Each network has a token bucket for new sessions and one for requests, so forged requests from a
/// player's address do not keep the player out. A common bucket for new sessions ensures that an
/// unproven session is not evicted before the longest round trip is over. While the network's or the
/// common bucket is low, a client must repeat the same datagram in the usual interval, and must not
/// have been admitted lately without being verified. The lower the bucket, the more repetitions are
/// required, up to three. One lost repetition does no harm. The last quarter of the common bucket is
/// for networks without stray, unproven or verified sessions. For requests, the lower the common
/// bucket, the fuller the network's bucket must be.
///
/// A keyed hash gives the place of a network's bucket, and its key changes every half minute. So a
/// client shares a bucket with a flood for at most half a minute.
///
/// Reserves a fixed 17 MiB of address space, of which only used pages take memory. Used by one
/// thread.
class StrangerFilter {
  public:
    /// `hash`: gives the table position of an address; tests pass a fixed one.
    StrangerFilter(const AdmissionLimits& limits, const AdmissionPools& pools,
                   const base::KeyedHash& hash = base::KeyedHash::random());

    /// Decides whether a datagram may begin a session of this standing. Precondition: not connless.
    /// `is_first`: the client's network has no stray, unproven or verified session.
    [[nodiscard]] AdmissionDecision decide_admission(const base::Endpoint& client,
                                                     Standing standing, bool is_first,
                                                     std::span<const std::byte> datagram,
                                                     std::uint32_t now_ms) noexcept;

    /// Decides about a request. `has_answer`: a stored answer can be repeated.
    [[nodiscard]] RequestDecision decide_request(const base::Endpoint& client, Request request,
                                                 bool has_answer, std::uint32_t now_ms) noexcept;

    /// Notes that the client was verified, so that its next session does not count as a retry.
    void note_verified(const base::Endpoint& client) noexcept;

  private:
    static constexpr std::size_t kWays = 4;
    static constexpr std::size_t kNetworks = std::size_t{1} << 16U;
    static constexpr std::size_t kWaitingClients = std::size_t{1} << 20U;

    /// The two uses of a network's bucket: new sessions and requests.
    enum class BucketPurpose : std::uint8_t { begin, ask };

    struct NetworkBucket {
        std::uint32_t tag;
        std::uint32_t tokens;
        std::uint32_t filled_ms;
    };

    struct BucketRate {
        std::uint32_t per_second;
        std::uint32_t burst;
    };

    /// The state of one address and port that has no session.
    struct WaitingClient {
        std::uint32_t tag;
        std::uint32_t seen_ms;            ///< when the client's last datagram came
        std::uint32_t datagram_hash : 24; ///< of the client's last datagram
        /// How often the client repeated its last datagram in the usual interval.
        std::uint32_t repeats : 8;
        std::uint32_t admitted_ms; ///< when the client was last admitted; 0: never
    };

    struct FreeMemory {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };

    template <typename Entry>
    using Table = std::unique_ptr<Entry, FreeMemory>;

    template <typename Entry>
    [[nodiscard]] static Table<Entry> make_table(std::size_t count);

    [[nodiscard]] NetworkBucket& bucket_of(const base::Network& network, BucketPurpose purpose,
                                           const BucketRate& rate, std::uint32_t now_ms) noexcept;
    /// The buckets of a client's networks. A datagram is admitted only if each of them has a token.
    class NetworkBuckets;

    [[nodiscard]] WaitingClient& waiting_of(const base::Endpoint& client,
                                            std::uint32_t now_ms) noexcept;
    /// Counts whether the datagram of a waiting client is a repetition.
    void count_repetition(WaitingClient& waiting, std::span<const std::byte> datagram,
                          std::uint32_t now_ms) const noexcept;

    AdmissionLimits limits_;
    base::KeyedHash hash_;
    TokenBucket entries_;  ///< new sessions
    TokenBucket requests_; ///< forwarded requests, except reserved ones
    TokenBucket asked_;    ///< common requests that are forwarded although an answer is stored
    TokenBucket repeated_; ///< common requests that get the stored answer
    TokenBucket reserved_; ///< reserved requests
    Table<NetworkBucket> networks_;
    Table<WaitingClient> waiting_;
};

} // namespace tw::relay
