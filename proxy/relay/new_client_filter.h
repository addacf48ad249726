#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/relay/ring.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace tw::relay {

/// How much the relay trusts a client, and so which resources the client's session may use. Later
/// values mean more trust. A session's standing never falls.
enum class ClientStanding : std::uint8_t {
    /// The client only sent requests without a connection. Such sessions have a separate limit and
    /// are not announced to the observer.
    connless,
    /// The client sent datagrams that are no requests and begin no connection. Such a session is
    /// treated as `unverified`, but not admitted while there are too many new clients.
    unrecognised,
    /// The client began a handshake; the session has a limited lifetime and may be evicted.
    unverified,
    /// The client's address is verified, but it has no slot on the server. May be evicted.
    verified,
    /// The client has a slot on the server, but the client's address is not verified. The session
    /// may be evicted when the client is silent.
    unverified_player,
    /// The client's address is verified, and the client has a slot on the server. The session is
    /// not evicted while the client has the slot.
    player,
};

/// The kind of request in a client's datagram that belongs to no connection.
enum class RequestKind : std::uint8_t {
    none,        ///< the datagram is not a request
    server_info, ///< a request for server info, which many clients send often
    /// A rare request, such as a master server's. It has a separate rate limit (rare_request_rate).
    rare,
    other,
};

/// What a DatagramJudge function found out about a datagram.
struct DatagramVerdict {
    /// The session's standing after the datagram.
    ClientStanding standing = ClientStanding::connless;
    RequestKind request = RequestKind::none; ///< the request in a client's datagram
    bool is_answered = false; ///< true if servers usually answer such a datagram of a client
    /// True if the datagram is the server's and shows that the client has a slot on the server.
    bool shows_player = false;
};

/// Memory in which a DatagramJudge function stores data about one session. Initially zeroed.
struct RememberedHandshakes {
    alignas(8) std::array<std::byte, 64> bytes{};
};

/// A function that examines the datagrams of a session, in order. Until the session's standing is
/// `player`, the function is called for all datagrams; afterwards, only for some datagrams of the
/// server. The first call comes before the session is created. It must not block or allocate.
using DatagramJudge = DatagramVerdict (*)(RememberedHandshakes& memory, Direction direction,
                                          std::span<const std::byte> datagram);

/// Limits for new clients and for requests without a connection. The defaults fit a game whose
/// handshake takes a second and whose clients send a hundred datagrams a second.
struct NewClientLimits {
    /// An unverified session is closed after this time. A handshake with repetitions takes less.
    std::chrono::milliseconds unverified_timeout{3000};
    /// A connectionless session is closed this long after its last request.
    std::chrono::milliseconds connless_timeout{2000};
    /// An unverified session is not evicted for this long. Clients with a longer round trip may be
    /// unable to connect while there are too many new clients.
    std::chrono::milliseconds min_unverified_time{250};
    /// Real clients repeat an unanswered datagram after a time from earliest_repetition to
    /// latest_repetition. While there are too many new clients, only clients that repeat it in this
    /// way are admitted.
    std::chrono::milliseconds earliest_repetition{450};
    std::chrono::milliseconds latest_repetition{600};
    /// While there are too many new clients, a client that was admitted but got no slot on the
    /// server is not admitted again before this time is over.
    std::chrono::milliseconds readmission_pause{30'000};
    /// If the server sends to other clients but nothing to one client for this long, that client's
    /// session may be evicted. Servers send at least one datagram a second to each player.
    std::chrono::milliseconds forgotten_time{3000};
    /// The most sessions that a base::Network may begin, per second and in a burst.
    std::uint32_t new_client_rate = 256;
    std::uint32_t request_rate = 4; ///< the most requests of a network per second
    std::uint32_t request_burst = 16;
    // The next two limits apply to the common requests of all clients together, while the relay has
    // a recent answer to such requests.
    std::uint32_t forwarded_rate = 32; ///< the most requests per second that reach the server
    std::uint32_t repeated_answer_rate = 4000; ///< the most answers per second by the relay itself
    /// The most rare requests of all clients that are forwarded per second.
    std::uint32_t rare_request_rate = 32;
    /// The most verified sessions per second that are announced to the observer before the client
    /// has a slot on the server.
    std::uint32_t announcement_rate = 8;
    std::uint32_t announcement_burst = 64;
    // The most datagrams per second of a client with a slot on the server, and of one without.
    std::uint32_t player_datagram_rate = 10'000;
    std::uint32_t other_datagram_rate = 128;
    /// The most sessions per IPv4 address or IPv6 /64, except loopback addresses; 0: unlimited.
    std::size_t max_per_address = 64;
};

/// The most sessions of each standing in one relay thread, derived from max_sessions.
struct SessionPoolSizes {
    /// The least size of the pools for unverified and for verified sessions, unless max_sessions is
    /// less. In a smaller pool, clients that join at the same time would evict each other.
    static constexpr std::size_t kMinHandshakePoolSize = 4;

    std::size_t unverified = 0; ///< unverified and unrecognised sessions together
    std::size_t verified = 0;
    std::size_t connless = 0;
    std::size_t unverified_players = 0;
    std::size_t per_address = 0; ///< for each client address; 0: unlimited

    SessionPoolSizes(std::size_t max_sessions, std::size_t threads,
                     std::size_t max_per_address = 0) {
        unverified = handshake_pool_size(max_sessions, 4 * threads);
        verified = handshake_pool_size(max_sessions, 8 * threads);
        connless = std::clamp<std::size_t>(max_sessions / 16 / threads, 4, 256);
        unverified_players = share_of(max_sessions, 2 * threads);
        per_address = std::min(max_per_address, unverified_players);
    }

    /// Returns how many of a pool's sessions one network may have. A wider network may have more,
    /// because more customers share it.
    [[nodiscard]] static std::size_t
    max_sessions_of_network(std::size_t pool, const base::Network& network) noexcept {
        const std::size_t parts = network.width == 0 ? 8 : network.width == 1 ? 4 : 2;
        return share_of(pool, parts);
    }

  private:
    [[nodiscard]] static std::size_t share_of(std::size_t total, std::size_t parts) noexcept {
        return std::max<std::size_t>(total / parts, 1);
    }

    [[nodiscard]] static std::size_t handshake_pool_size(std::size_t total,
                                                         std::size_t parts) noexcept {
        return std::max(share_of(total, parts), std::min(total, kMinHandshakePoolSize));
    }
};

/// A client's request without a connection. Each answer contains its question's token. Except for
/// the token, the answers to all questions of a kind are equal.
struct ClientQuestion {
    /// The kind of question, less than kMaxQuestionKinds; 0: the relay forwards the question and
    /// does not store the answer.
    std::uint8_t kind = 0;
    std::uint32_t token = 0;
};

inline constexpr std::size_t kMaxQuestionKinds = 4;

/// Tells which part of the server's answer to a question a datagram is.
enum class AnswerPartKind : std::uint8_t {
    none, ///< the datagram does not belong to the answer
    first,
    later,
};

/// Functions with which the relay answers a client's question with the server's answer to another
/// client. Supplied by the relay's owner, who knows the game's format. They must not block or
/// allocate.
struct AnswerFunctions {
    /// Returns the question in a client's datagram.
    ClientQuestion (*read_question)(std::span<const std::byte> datagram) = nullptr;
    /// Returns which part of the answer to this question a server's datagram is.
    AnswerPartKind (*classify_answer)(std::span<const std::byte> datagram,
                                      const ClientQuestion& question) = nullptr;
    /// Writes a copy of a part of an answer, changed for another question of the same kind, into
    /// `out`. Returns the number of bytes written; 0 if that is impossible.
    std::size_t (*write_answer)(std::span<const std::byte> part, const ClientQuestion& question,
                                std::span<std::byte> out) = nullptr;
};

/// Stores the server's latest complete answer to each kind of question. Memory use is fixed.
class AnswerCache {
  public:
    /// The most parts of an answer: enough for a full server of 128 players.
    static constexpr std::size_t kMaxParts = 8;
    /// The most bytes of a part. An answer with a longer part is not stored.
    static constexpr std::size_t kMaxPartBytes = 1400;
    /// The greatest age of an answer that find_answer() returns.
    static constexpr std::uint32_t kMaxAgeMs = 1000;
    /// The longest time between the first and the last part of an answer.
    static constexpr std::uint32_t kMaxPartSpanMs = 30;

    struct Answer {
        struct Part {
            std::uint16_t size = 0;
            std::array<std::byte, kMaxPartBytes>
                bytes; // NOLINT(*-member-init): only the bytes in use are set
        };

        std::uint32_t first_part_ms = 0; ///< when the first part was received
        /// Session::number of the client that got the answer from the server; 0: no answer.
        std::uint32_t asker = 0;
        /// Number of parts; kMaxParts + 1: the answer is too long to store.
        std::uint8_t num_parts = 0;
        std::array<Part, kMaxParts> parts;

        [[nodiscard]] std::span<const std::byte> part(std::size_t i) const noexcept {
            return std::span{parts[i].bytes}.first(parts[i].size);
        }
    };

    /// Stores a part of the server's answer to a question of this kind; ignores
    /// AnswerPartKind::none.
    /// `asker`: Session::number of the client that gets the answer.
    void add_part(std::uint8_t kind, std::uint32_t asker, AnswerPartKind part,
                  std::span<const std::byte> datagram, std::uint32_t now_ms) noexcept;

    /// Returns the latest complete answer to questions of this kind; null if no answer is stored or
    /// the latest answer is too old.
    [[nodiscard]] const Answer* find_answer(std::uint8_t kind, std::uint32_t now_ms) noexcept;

  private:
    /// The latest complete answer, and an answer whose parts are still being received.
    struct AnswerPair {
        std::array<Answer, 2> answers;
        std::uint8_t current = 0; ///< index of the latest complete answer
    };

    static void finish_due_answer(AnswerPair& pair, std::uint32_t now_ms) noexcept;

    std::unique_ptr<std::array<AnswerPair, kMaxQuestionKinds>> pairs_ =
        std::make_unique<std::array<AnswerPair, kMaxQuestionKinds>>();
};

/// How scarce the tokens of a bucket are. `none`: the bucket is at least half full. Otherwise it is
/// less than half, a quarter or an eighth full.
enum class TokenScarcity : std::uint8_t { none, below_half, below_quarter, below_eighth };

/// A token bucket with millisecond resolution.
class TokenBucket {
  public:
    /// Starts with a full bucket. `rate`: tokens per second; 0: unlimited.
    TokenBucket(std::uint32_t rate, std::uint32_t capacity) noexcept
        : rate_{rate}, capacity_{capacity}, tokens_{capacity} {}

    explicit TokenBucket(std::uint32_t rate) noexcept : TokenBucket{rate, rate} {}

    [[nodiscard]] bool try_take_token(std::uint32_t now_ms) noexcept {
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
        if (due != 0) { // a change of filled_ms_ without new tokens would lose the elapsed time
            tokens_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens_ + due, capacity_));
            filled_ms_ = now_ms;
        }
    }

    [[nodiscard]] std::uint32_t rate() const noexcept { return rate_; }

    [[nodiscard]] std::uint32_t tokens() const noexcept { return tokens_; }

    /// Removes tokens. Precondition: `tokens` is at most tokens().
    void take_tokens(std::uint32_t tokens) noexcept { tokens_ -= tokens; }

    [[nodiscard]] TokenScarcity scarcity() const noexcept {
        const std::uint64_t eightfold = std::uint64_t{tokens_} * 8;
        return eightfold < capacity_                      ? TokenScarcity::below_eighth
               : eightfold < std::uint64_t{capacity_} * 2 ? TokenScarcity::below_quarter
               : eightfold < std::uint64_t{capacity_} * 4 ? TokenScarcity::below_half
                                                          : TokenScarcity::none;
    }

  private:
    std::uint32_t rate_;
    std::uint32_t capacity_;
    std::uint32_t tokens_;
    std::uint32_t filled_ms_ = 0;
};

/// Why a new client's datagram is rejected.
enum class NewClientRefusal : std::uint8_t {
    none,
    network_limit, ///< too many datagrams came from the client's network
    /// There are too many new clients, and this client did not repeat its datagram as real clients
    /// do.
    too_many_new_clients,
};

/// The decision whether a datagram may begin a session.
struct NewClientDecision {
    NewClientRefusal refusal = NewClientRefusal::none;
    /// How often the client repeated the datagram in the interval that NewClientLimits allows.
    std::uint8_t num_repeats = 0;
};

/// What the relay does with a request without a connection.
enum class RequestDecision : std::uint8_t {
    forward,
    repeat_answer,           ///< answer the request with the server's latest answer
    reject_by_network_limit, ///< too many requests came from the client's network
    reject_by_total_limit,   ///< too many requests came from all clients together
};

/// Decides which datagrams of new clients may begin a session, so that floods neither slow down
/// other sessions nor keep real clients out.
///
/// Each network has a token bucket for new sessions and a token bucket for requests, so forged
/// requests from a player's address do not keep the player out. While a bucket for new sessions is
/// less than half full, a client must repeat its datagram as real clients do. The emptier the
/// bucket, the more repetitions are required, up to three. A single lost repetition does not reset
/// their number.
///
/// A token bucket for the new sessions of all clients ensures that no unverified session is evicted
/// before min_unverified_time (see NewClientLimits) is over. While this bucket is less than half
/// full, readmission_pause applies. The bucket's last quarter is reserved for networks that have no
/// session. The emptier the bucket for the requests of all clients, the fuller the bucket for the
/// network's requests must be.
///
/// A keyed hash selects a network's bucket. The key changes every half minute, so a client shares a
/// bucket with a flood for at most half a minute.
///
/// Reserves 18 MiB of address space, of which only used pages take memory. Used by one thread.
class NewClientFilter {
  public:
    /// `hash`: selects the table entry of an address; tests pass a fixed hash.
    NewClientFilter(const NewClientLimits& limits, const SessionPoolSizes& pools,
                    const base::KeyedHash& hash = base::KeyedHash::with_random_key());

    /// Decides whether a datagram may begin a session of this standing. `standing`: not `connless`.
    /// `is_first`: the client's network has no unrecognised, unverified or verified session.
    [[nodiscard]] NewClientDecision decide_new_client(const base::Endpoint& client,
                                                      ClientStanding standing, bool is_first,
                                                      std::span<const std::byte> datagram,
                                                      std::uint32_t now_ms) noexcept;

    /// Decides what to do with a request. `has_answer`: an answer to such a request is stored.
    [[nodiscard]] RequestDecision decide_request(const base::Endpoint& client, RequestKind request,
                                                 bool has_answer, std::uint32_t now_ms) noexcept;

    /// Must be called when the client got a slot on the server. The client's next session is then
    /// not delayed by readmission_pause (see NewClientLimits).
    void lift_readmission_pause(const base::Endpoint& client) noexcept;

  private:
    /// A hash table of fixed size that forgets its least recently used entries. Entries have the
    /// members `tag` (from the hash; 0: free) and `seen_ms`.
    template <typename Entry>
    class HashTable {
      public:
        explicit HashTable(std::size_t entries)
            : sets_{entries / kWays},
              // calloc does not touch the memory, so unused pages take no memory.
              // NOLINTNEXTLINE(cppcoreguidelines-no-malloc)
              entries_{static_cast<Entry*>(std::calloc(entries, sizeof(Entry)))} {
            if (entries_ == nullptr) {
                throw std::bad_alloc{};
            }
        }

        /// Returns the entry with this hash; null if there is none.
        [[nodiscard]] Entry* find(std::uint64_t hash) noexcept {
            const auto set = entries_of(hash);
            const auto found = std::ranges::find(set, tag_of(hash), &Entry::tag);
            return found == set.end() ? nullptr : &*found;
        }

        /// Returns the entry with this hash. If there is none, adds `fresh`.
        [[nodiscard]] Entry& find_or_add(std::uint64_t hash, const Entry& fresh,
                                         std::uint32_t now_ms) noexcept {
            if (Entry* const found = find(hash)) {
                return *found;
            }
            const auto age_of = [now_ms](const Entry& entry) { return now_ms - entry.seen_ms; };
            Entry& oldest = *std::ranges::max_element(entries_of(hash), {}, age_of);
            oldest = fresh;
            oldest.tag = tag_of(hash);
            return oldest;
        }

      private:
        /// The number of entries in a set. A hash selects a set, which stores it in any entry.
        static constexpr std::size_t kWays = 4;

        struct MallocDeleter {
            void operator()(void* memory) const noexcept { std::free(memory); }
        };

        /// Returns the tag for a hash. It is never zero, because zero marks a free entry.
        [[nodiscard]] static std::uint32_t tag_of(std::uint64_t hash) noexcept {
            return static_cast<std::uint32_t>(hash >> 32U) | 1U;
        }

        [[nodiscard]] std::span<Entry> entries_of(std::uint64_t hash) noexcept {
            return {entries_.get() + hash % sets_ * kWays, kWays};
        }

        std::size_t sets_;
        std::unique_ptr<Entry, MallocDeleter> entries_;
    };

    enum class BucketPurpose : std::uint8_t { new_sessions, requests };

    struct NetworkBucket {
        std::uint32_t tag;
        std::uint32_t seen_ms; ///< when the network's latest datagram came
        TokenBucket bucket;
    };

    /// The state of a client (address and port) that has no session.
    struct WaitingClient {
        std::uint32_t tag;
        std::uint32_t seen_ms;            ///< when the client's latest datagram came
        std::uint32_t datagram_hash : 24; ///< hash of the client's latest datagram
        /// How often the client repeated its latest datagram as real clients do.
        std::uint32_t num_repeats : 8;
        /// When the client was last admitted without getting a slot on the server; 0: never.
        std::uint32_t admitted_ms;
    };

    [[nodiscard]] TokenBucket& bucket_of(const base::Network& network, BucketPurpose purpose,
                                         const TokenBucket& full, std::uint32_t now_ms) noexcept;
    /// The buckets of all networks of a client. A datagram needs a token from each bucket.
    class NetworkBuckets;

    /// Counts a repetition if `datagram` repeats the waiting client's latest datagram.
    void count_repetition(WaitingClient& waiting, std::span<const std::byte> datagram,
                          std::uint32_t now_ms) const noexcept;

    NewClientLimits limits_;
    base::KeyedHash hash_;
    // Limits for all clients together.
    TokenBucket new_sessions_;
    TokenBucket forwarded_requests_;        ///< forwarded requests, except reserved requests
    TokenBucket forwarded_common_requests_; ///< common requests whose answer is stored
    TokenBucket repeated_answers_;
    TokenBucket rare_requests_;
    HashTable<NetworkBucket> network_buckets_{std::size_t{1} << 16U};
    HashTable<WaitingClient> waiting_clients_{std::size_t{1} << 20U};
};

} // namespace tw::relay
