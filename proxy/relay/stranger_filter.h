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

/// How far a client's connection has got, and so which resources it may use. Later values are
/// further; a session's standing never falls.
enum class Standing : std::uint8_t {
    /// Only sent requests without a connection; has its own pool, not announced to the observer.
    connless,
    stray, ///< sent datagrams that begin no connection; as unproven, but rejected when many arrive
    unproven, ///< began a handshake; limited lifetime, may be evicted
    /// The client's address is verified, but the server does not play with the client; may be
    /// evicted.
    verified,
    /// The server plays with the client, but the client's address is not verified; evicted when
    /// silent.
    weak,
    /// The address is verified, and the server plays with the client; not evicted while that is so.
    player,
};

/// What a datagram without a connection requests.
enum class Request : std::uint8_t {
    none,
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
    bool is_answered = false; ///< for a client's datagram: whether servers usually answer it
    bool is_play = false;     ///< for a server's datagram: the client has a slot on the server
};

/// Memory of a Prove function for one session. Zeroed memory is the initial state.
struct ProofMemory {
    alignas(8) std::array<std::byte, 64> bytes{};
};

/// Examines the datagrams of a session in order: all until the session is a player, afterwards only
/// some of the server's. The first datagram is examined before the session is created. Must not
/// block or allocate.
using Prove = Verdict (*)(ProofMemory& memory, Direction direction,
                          std::span<const std::byte> datagram);

/// Limits for unverified clients and for requests. The defaults fit a game whose handshake takes a
/// second and whose clients send a hundred datagrams a second.
struct AdmissionLimits {
    /// Time for a handshake with all its repetitions.
    std::chrono::milliseconds unproven_time{3000};
    /// How long a session without a connection lives after its last request, so that the answer can
    /// arrive.
    std::chrono::milliseconds connless_time{2000};
    /// The guaranteed lifetime of an unproven session: the longest round trip of a client that can
    /// connect.
    std::chrono::milliseconds least_time{250};
    /// The interval in which an unanswered client repeats its datagram. While there are too many
    /// new clients, only clients that repeat in this interval are admitted.
    std::chrono::milliseconds earliest_repetition{450};
    std::chrono::milliseconds latest_repetition{600};
    /// While there are too many new clients, a client that was admitted but not verified is
    /// admitted again after this time.
    std::chrono::milliseconds second_chance{30'000};
    /// If the server answers others but sends nothing to a client for this long, the client's
    /// session no longer keeps its place. Servers send something every second at least.
    std::chrono::milliseconds forgotten_time{3000};
    /// Datagrams that would begin a session, per network (see Network): rate per second, and burst.
    std::uint32_t strangers_rate = 256;
    /// Requests per network: rate per second, and burst.
    std::uint32_t requests_rate = 4;
    std::uint32_t requests_burst = 16;
    /// Limits for the common requests of all clients together, per second: how many are forwarded
    /// to the server while a recent answer is stored, and how many are answered with the stored
    /// answer.
    std::uint32_t asked_rate = 32;
    std::uint32_t repeated_rate = 4000;
    /// The limit for the reserved requests of all clients together, per second.
    std::uint32_t reserved_rate = 32;
    /// Verified sessions announced before the server plays with them: rate per second, and burst.
    std::uint32_t verified_rate = 8;
    std::uint32_t verified_burst = 64;
    /// Datagrams of one session to the server, per second: of a session that the server plays with,
    /// and of any other.
    std::uint32_t session_rate = 10'000;
    std::uint32_t unproven_rate = 128;
    /// Sessions per IPv4 address or IPv6 /64, except loopback; 0: unlimited. See AdmissionPools.
    std::size_t max_per_address = 64;
};

/// The pool sizes of one relay thread, derived from max_sessions.
struct AdmissionPools {
    std::size_t unproven; ///< includes stray sessions
    std::size_t verified;
    std::size_t connless;
    std::size_t weak;
    std::size_t per_address; ///< the most sessions with a place; 0: unlimited

    AdmissionPools(std::size_t max_sessions, std::size_t threads, std::size_t max_per_address = 0)
        : unproven{part(max_sessions, 4 * threads)}, verified{part(max_sessions, 8 * threads)},
          connless{std::clamp<std::size_t>(max_sessions / 16 / threads, 4, 256)}, weak{part(
                                                                                      max_sessions,
                                                                                      2 * threads)},
          per_address{std::min(max_per_address, part(max_sessions, 2 * threads))} {}

    /// The most sessions of a pool that one network may have. Wider networks get more, because more
    /// customers share them.
    [[nodiscard]] static std::size_t share(std::size_t pool,
                                           const base::Network& network) noexcept {
        const std::size_t whole = network.width == 0 ? 8 : network.width == 1 ? 4 : 2;
        return part(pool, whole);
    }

  private:
    [[nodiscard]] static std::size_t part(std::size_t all, std::size_t of) noexcept {
        return std::max<std::size_t>(all / of, 1);
    }
};

/// A client's request without a connection. Equal questions get equal answers, except for the
/// token, which the answer contains.
struct Question {
    /// The kind of question, below kMaxQuestions; 0: a question whose answer is not repeated.
    std::uint8_t kind = 0;
    std::uint32_t token = 0;
};

inline constexpr std::size_t kMaxQuestions = 4;

/// One datagram of the server's answer to a question.
struct AnswerPart {
    bool is_first = false;
};

/// Functions of the caller, because the relay does not know the game's format. They let the relay
/// answer one client's question with the server's answer to another client. They must not block or
/// allocate.
struct Repeating {
    /// Returns the question in a client's datagram.
    Question (*read_question)(std::span<const std::byte> datagram) = nullptr;
    /// Returns the part if the server's datagram belongs to its answer to the question.
    std::optional<AnswerPart> (*read_answer)(std::span<const std::byte> datagram,
                                             const Question& question) = nullptr;
    /// Rewrites a part of an answer for another question of the same kind. Returns its size; 0 if
    /// that is not possible.
    std::size_t (*write_answer)(std::span<const std::byte> part, const Question& question,
                                std::span<std::byte> out) = nullptr;
};

/// The server's last complete answer to each kind of question. Memory use is fixed.
class Answers {
  public:
    /// Enough parts for a full server of 128 players.
    static constexpr std::size_t kMaxParts = 8;
    /// The most bytes of a part. An answer with a longer part is not stored.
    static constexpr std::size_t kMaxBytes = 1400;
    /// The age up to which an answer is repeated.
    static constexpr std::uint32_t kHoldsMs = 1000;
    /// The longest time between the first and the last part of an answer.
    static constexpr std::uint32_t kCompleteMs = 30;

    /// An answer of the server to a question.
    struct Answer {
        struct Part {
            std::uint16_t size = 0;
            std::array<std::byte, kMaxBytes> bytes; // NOLINT(*-member-init): as far as it is used
        };

        std::uint32_t came_ms = 0;
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
    /// Two answers: one is written while the other one is read.
    struct Pair {
        std::array<Answer, 2> answers;
        std::uint8_t whole = 0;
    };

    static void settle(Pair& pair, std::uint32_t now_ms) noexcept;

    std::unique_ptr<std::array<Pair, kMaxQuestions>> pairs_ =
        std::make_unique<std::array<Pair, kMaxQuestions>>();
};

/// How much of a resource is left: at least half, or less than a half, a quarter or an eighth.
enum class Scarcity : std::uint8_t { none, half, quarter, eighth };

[[nodiscard]] constexpr Scarcity scarcity_of(std::uint32_t left, std::uint32_t whole) noexcept {
    const std::uint64_t eightfold = std::uint64_t{left} * 8;
    return eightfold < whole                      ? Scarcity::eighth
           : eightfold < std::uint64_t{whole} * 2 ? Scarcity::quarter
           : eightfold < std::uint64_t{whole} * 4 ? Scarcity::half
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
        if (due != 0) { // else the time counts for the next token
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
    crowd, ///< too many new clients, and this one did not repeat itself as a client does
};

/// The decision about a datagram that would begin a session.
struct Entry {
    Refusal refusal = Refusal::none;
    /// How often the client has repeated the datagram at a client's interval.
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
/// player's address do not keep the player out. A common bucket for new sessions lets each unproven
/// session live for the longest round trip before it is evicted. While either bucket is low, a
/// client must repeat the same datagram at a client's interval, and must not have been admitted
/// before without verification. The lower the bucket, the more repetitions are required, up to
/// three. A single lost one between them does no harm. The last quarter of the common bucket is for
/// networks without stray, unproven or verified sessions. For requests, the lower the common bucket, the fuller the network's bucket must be.
///
/// The position of a network's bucket is a keyed hash, and the key changes every half minute. So a
/// client shares a bucket with a flood for at most that long.
///
/// Memory is fixed at 17 MiB, and only used parts are touched. Used by one thread.
class StrangerFilter {
  public:
    /// `hash`: gives the table position of an address; tests pass a fixed one.
    StrangerFilter(const AdmissionLimits& limits, const AdmissionPools& pools,
                   const base::KeyedHash& hash = base::KeyedHash::random());

    /// Decides whether a datagram may begin a session of this standing. Precondition: not connless.
    /// `is_first`: the client's network has no stray, unproven or verified session.
    [[nodiscard]] Entry may_begin(const base::Endpoint& client, Standing standing, bool is_first,
                                  std::span<const std::byte> datagram,
                                  std::uint32_t now_ms) noexcept;

    /// Decides about a request. `has_answer`: a stored answer can be repeated.
    [[nodiscard]] RequestDecision may_ask(const base::Endpoint& client, Request request,
                                          bool has_answer, std::uint32_t now_ms) noexcept;

    /// Notes that the client was verified: its next session is not treated as a retry.
    void note_verified(const base::Endpoint& client) noexcept;

  private:
    static constexpr std::size_t kWays = 4;
    static constexpr std::size_t kNetworks = std::size_t{1} << 16U;
    static constexpr std::size_t kWaiting = std::size_t{1} << 20U;

    /// The two uses of a network's bucket: new sessions and requests.
    enum class Purpose : std::uint8_t { begin, ask };

    struct NetworkBucket {
        std::uint32_t tag;
        std::uint32_t tokens;
        std::uint32_t filled_ms;
    };

    struct Rate {
        std::uint32_t a_second;
        std::uint32_t at_once;
    };

    /// The state of one address and port that has no session.
    struct Waiting {
        std::uint32_t tag;
        std::uint32_t seen_ms;   ///< when the client's last datagram came
        std::uint32_t said : 24; ///< hash of the client's last datagram, to recognise a repetition
        /// How often the client repeated the last datagram at a client's interval.
        std::uint32_t repeats : 8;
        std::uint32_t entered_ms; ///< when the client was last admitted; 0: never
    };

    struct Free {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };

    template <typename Entry>
    using Table = std::unique_ptr<Entry, Free>;

    template <typename Entry>
    [[nodiscard]] static Table<Entry> make_table(std::size_t count);

    [[nodiscard]] NetworkBucket& bucket_of(const base::Network& network, Purpose purpose,
                                           const Rate& rate, std::uint32_t now_ms) noexcept;
    /// The buckets of a client's networks; a token is taken only if each of them has one.
    class NetworkBuckets;

    [[nodiscard]] Waiting& waiting_of(const base::Endpoint& client, std::uint32_t now_ms) noexcept;
    /// Counts a datagram of a client that waits for admission.
    void note(Waiting& waiting, std::span<const std::byte> datagram,
              std::uint32_t now_ms) const noexcept;

    AdmissionLimits limits_;
    base::KeyedHash hash_;
    TokenBucket entries_;
    TokenBucket requests_;
    TokenBucket asked_;
    TokenBucket repeated_;
    TokenBucket reserved_;
    Table<NetworkBucket> networks_;
    Table<Waiting> waiting_;
};

} // namespace tw::relay
