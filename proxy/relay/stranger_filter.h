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

/// How far a client has come with the server, and so what it may take. Later is further. A session
/// only ever rises.
enum class Standing : std::uint8_t {
    connless, ///< asks without a connection: a pool of its own, and nobody is told
    stray,    ///< sends what begins nothing: as unproven, but turned away while there is a crowd
    unproven, ///< has begun something: a short stay, and others displace it
    verified, ///< receives at its address, but the server does nothing for it: others displace it
    weak,     ///< the server plays with it without proof of its address: displaced when silent
    player,   ///< verified, and the server plays with it: not displaced while it does
};

/// What a datagram without a connection asks for.
enum class Request : std::uint8_t {
    none,
    common,   ///< what anyone asks for, over and over
    reserved, ///< what few ask for, and rarely: it has a reserve beside the common ones
    other,
};

/// What a datagram means.
struct Verdict {
    Standing standing = Standing::connless; ///< of its session, from now on
    Request request = Request::none;        ///< of a client's
    bool is_answered = false;               ///< a client's: servers are known to answer such
    bool is_play = false;                   ///< a server's: it holds a place for the client
};

/// Room for what a Prove function remembers of one session. Zeros at first.
struct ProofMemory {
    alignas(8) std::array<std::byte, 64> bytes{};
};

/// Looks at each datagram of a session, in order, until the session is a player; then at enough of
/// the server's to see that it still plays with it. The first one is looked at before the session
/// is made. It must not wait or allocate.
using Prove = Verdict (*)(ProofMemory& memory, Direction direction,
                          std::span<const std::byte> datagram);

/// What strangers may take. The defaults are for a game's sessions, which take a second to begin
/// and a hundred datagrams a second to play.
struct AdmissionLimits {
    std::chrono::milliseconds unproven_time{3000}; ///< a handshake with all its repetitions
    std::chrono::milliseconds connless_time{2000}; ///< for the answer; counts from the last request
    /// An unproven session can live this long whatever comes: the longest round trip that gets in.
    std::chrono::milliseconds least_time{250};
    /// A client that is not answered repeats itself after this long. While there is a crowd, only
    /// who does is let in.
    std::chrono::milliseconds earliest_repetition{450};
    std::chrono::milliseconds latest_repetition{600};
    /// Who was let in and proved nothing is let in again after this long, while there is a crowd.
    std::chrono::milliseconds second_chance{30'000};
    /// A server that answers others, but says nothing to a client for this long, holds no place for
    /// it any more. Servers send something every second at least.
    std::chrono::milliseconds forgotten_time{3000};
    /// Datagrams that would begin a session, from one network (see Network), a second, and as many
    /// at once.
    std::uint32_t strangers_rate = 256;
    /// Requests from one network, a second, and at once.
    std::uint32_t requests_rate = 4;
    std::uint32_t requests_burst = 16;
    /// Common requests of all that are passed on to the server, a second, while there is a recent
    /// answer for the others; and those that get that, a second.
    std::uint32_t asked_rate = 32;
    std::uint32_t repeated_rate = 4000;
    /// Reserved requests of all, a second.
    std::uint32_t reserved_rate = 32;
    /// Verified sessions that the observer hears of before the server plays with them, a second,
    /// and at once.
    std::uint32_t verified_rate = 8;
    std::uint32_t verified_burst = 64;
    /// Datagrams of one session, to the server, a second; of one that the server does not play with.
    std::uint32_t session_rate = 10'000;
    std::uint32_t unproven_rate = 128;
    /// Sessions of one IPv4 address or IPv6 /64 that is not loopback; 0: no limit. See
    /// AdmissionPools.
    std::size_t max_per_address = 64;
};

/// The pools of one relay thread, from the size of the whole table.
struct AdmissionPools {
    std::size_t unproven; ///< stray ones, too
    std::size_t verified;
    std::size_t connless;
    std::size_t weak;
    std::size_t per_address; ///< sessions with a place; 0: no limit

    AdmissionPools(std::size_t max_sessions, unsigned threads, std::size_t max_per_address = 0)
        : unproven{part(max_sessions, 4 * threads)}, verified{part(max_sessions, 8 * threads)},
          connless{std::clamp<std::size_t>(max_sessions / 16 / threads, 4, 256)}, weak{part(
                                                                                      max_sessions,
                                                                                      2 * threads)},
          per_address{std::min(max_per_address, part(max_sessions, 2 * threads))} {}

    /// What one network may have of a pool. The wider it is, the more customers share it.
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

/// What a client asks for without a connection. Whoever asks the same gets the same answer, but for the token
/// that it repeats.
struct Question {
    std::uint8_t kind = 0; ///< below kMaxQuestions; 0: none that can be answered by a repetition
    std::uint32_t token = 0;
};

inline constexpr std::size_t kMaxQuestions = 4;

/// One datagram of the server's answer to a question.
struct AnswerPart {
    bool is_first = false;
};

/// Pure functions that let a relay, which knows nothing of the game, repeat to one client what the
/// server answered to another. They must not wait or allocate.
struct Repeating {
    /// What a client's datagram asks.
    Question (*read_question)(std::span<const std::byte> datagram) = nullptr;
    /// Whether a server's datagram is a part of its answer to the question.
    std::optional<AnswerPart> (*read_answer)(std::span<const std::byte> datagram,
                                             const Question& question) = nullptr;
    /// Writes such a part as the server would have written it for another question of that kind. Returns its
    /// size; 0: it cannot.
    std::size_t (*write_answer)(std::span<const std::byte> part, const Question& question,
                                std::span<std::byte> out) = nullptr;
};

/// The server's last answer to each kind of question, all of whose parts came from the server at once. Memory
/// is fixed.
class Answers {
  public:
    /// As many parts as a full server of 128 needs.
    static constexpr std::size_t kMaxParts = 8;
    /// A longer part is not kept, and neither is its answer.
    static constexpr std::size_t kMaxBytes = 1400;
    /// An older answer is not repeated.
    static constexpr std::uint32_t kHoldsMs = 1000;
    /// An answer's parts come within this time.
    static constexpr std::uint32_t kCompleteMs = 30;

    /// What was answered to a question.
    struct Answer {
        struct Part {
            std::uint16_t size = 0;
            std::array<std::byte, kMaxBytes> bytes; // NOLINT(*-member-init): as far as it is used
        };

        std::uint32_t came_ms = 0;
        std::uint32_t asker = 0;    ///< number of the session it went to; 0: none
        std::uint8_t num_parts = 0; ///< kMaxParts + 1: more than can be kept
        std::array<Part, kMaxParts> parts;

        [[nodiscard]] std::span<const std::byte> part(std::size_t i) const noexcept {
            return std::span{parts[i].bytes}.first(parts[i].size);
        }
    };

    /// Takes a part of the answer to `kind` that session `asker` got.
    void add(std::uint8_t kind, std::uint32_t asker, const AnswerPart& part,
             std::span<const std::byte> datagram, std::uint32_t now_ms) noexcept;

    /// The last whole answer, when it is recent enough; else null.
    [[nodiscard]] const Answer* find(std::uint8_t kind, std::uint32_t now_ms) noexcept;

  private:
    /// One is written while the other is read.
    struct Pair {
        std::array<Answer, 2> answers;
        std::uint8_t whole = 0;
    };

    void settle(Pair& pair, std::uint32_t now_ms) noexcept;

    std::unique_ptr<std::array<Pair, kMaxQuestions>> pairs_ =
        std::make_unique<std::array<Pair, kMaxQuestions>>();
};

/// How little is left of what many want: nothing to speak of is missing, or less than a half, a
/// quarter or an eighth is left.
enum class Scarcity : std::uint8_t { none, half, quarter, eighth };

[[nodiscard]] constexpr Scarcity scarcity_of(std::uint32_t left, std::uint32_t whole) noexcept {
    const std::uint64_t eightfold = std::uint64_t{left} * 8;
    return eightfold < whole                      ? Scarcity::eighth
           : eightfold < std::uint64_t{whole} * 2 ? Scarcity::quarter
           : eightfold < std::uint64_t{whole} * 4 ? Scarcity::half
                                                  : Scarcity::none;
}

/// Tokens that come back with time, in whole milliseconds.
class TokenBucket {
  public:
    /// Full at first. `rate`: tokens a second; 0: as many as anyone wants.
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

/// Why a stranger's datagram gets no session.
enum class Refusal : std::uint8_t {
    none,
    flood, ///< too many of its address
    crowd, ///< too many strangers at once, and this one does not stand out
};

/// What becomes of a datagram that would begin a session.
struct Entry {
    Refusal refusal = Refusal::none;
    std::uint8_t repeats = 0; ///< how often it came again in a client's rhythm
};

/// What becomes of a request without a connection.
enum class Passage : std::uint8_t {
    server, ///< passed on
    repeat, ///< it gets the last answer
    flood,  ///< too many of its network
    crowd,  ///< too many of all
};

/// Stands before the table of sessions: of the datagrams that belong to none it lets few enough
/// begin one that this costs the others nothing, and as many real clients as it can tell.
///
/// Each network has a bucket of tokens for sessions to begin, and one for requests, so that requests
/// in the name of a player's address do not keep that player out. All together have one for sessions
/// that lets an unproven one live for the longest round trip before it has to leave for the next.
/// While either is low, only who repeats itself as a waiting client does is let in, saying the same
/// and nothing else in between, and not who was let in before and proved nothing. The lower it is,
/// the more often a client has to have repeated itself, up to three times: so what is left is for
/// those who stand out most. Requests are shared alike: the lower the bucket of all, the fuller that
/// of the network has to be.
///
/// Where a network's bucket stands is a keyed hash, and the key changes every half a minute: who
/// shares one with a flood does so for no longer.
///
/// Memory is fixed, 17 MiB, and touched only as far as strangers come. One thread's.
class StrangerFilter {
  public:
    /// `hash`: where in its tables an address stands; tests choose one that is always the same.
    StrangerFilter(const AdmissionLimits& limits, const AdmissionPools& pools,
                   const base::KeyedHash& hash = base::KeyedHash::random());

    /// Whether a datagram may begin a session of that standing, which is not connless.
    [[nodiscard]] Entry may_begin(const base::Endpoint& client, Standing standing,
                                  std::span<const std::byte> datagram,
                                  std::uint32_t now_ms) noexcept;

    /// Whether a request may pass. `has_answer`: there is one to be repeated.
    [[nodiscard]] Passage may_ask(const base::Endpoint& client, Request request, bool has_answer,
                                  std::uint32_t now_ms) noexcept;

    /// The client has proved itself: it is no stranger when it comes again.
    void forgive(const base::Endpoint& client) noexcept;

  private:
    static constexpr std::size_t kWays = 4;
    static constexpr std::size_t kNetworks = std::size_t{1} << 16U;
    static constexpr std::size_t kWaiting = std::size_t{1} << 20U;

    /// What the buckets of networks are for.
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

    /// What is remembered of one address and port.
    struct Waiting {
        std::uint32_t tag;
        std::uint32_t seen_ms;     ///< its last datagram
        std::uint32_t said : 24;   ///< a hash of that
        std::uint32_t repeats : 8; ///< how often it came again in a client's rhythm
        std::uint32_t entered_ms;  ///< last let in; 0: never
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
    /// The buckets of a client's networks, from which a token may be taken if all have one.
    class NetworkBuckets;

    [[nodiscard]] Waiting& waiting_of(const base::Endpoint& client, std::uint32_t now_ms) noexcept;
    /// Counts a datagram of a stranger that waits.
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
