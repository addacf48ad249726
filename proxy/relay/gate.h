#pragma once

#include "proxy/relay/admission.h"
#include "proxy/relay/clock.h"
#include "proxy/relay/keyed_hash.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace tw::relay {

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
class Gate {
  public:
    /// `hash`: where in its tables an address stands; tests choose one that is always the same.
    Gate(const AdmissionLimits& limits, const AdmissionPools& pools,
         const KeyedHash& hash = KeyedHash::random());

    /// Whether a datagram may begin a session of that standing, which is not connless.
    [[nodiscard]] Entry may_begin(const Endpoint& client, Standing standing,
                                  std::span<const std::byte> datagram,
                                  std::uint32_t now_ms) noexcept;

    /// Whether a request may pass. `has_answer`: there is one to be repeated.
    [[nodiscard]] Passage may_ask(const Endpoint& client, Request request, bool has_answer,
                                  std::uint32_t now_ms) noexcept;

    /// The client has proved itself: it is no stranger when it comes again.
    void forgive(const Endpoint& client) noexcept;

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

    [[nodiscard]] NetworkBucket& bucket_of(const Network& network, Purpose purpose,
                                           const Rate& rate, std::uint32_t now_ms) noexcept;
    /// The buckets of a client's networks, from which a token may be taken if all have one.
    class NetworkBuckets;

    [[nodiscard]] Waiting& waiting_of(const Endpoint& client, std::uint32_t now_ms) noexcept;
    /// Counts a datagram of a stranger that waits.
    void note(Waiting& waiting, std::span<const std::byte> datagram,
              std::uint32_t now_ms) const noexcept;

    AdmissionLimits limits_;
    KeyedHash hash_;
    TokenBucket entries_;
    TokenBucket requests_;
    TokenBucket asked_;
    TokenBucket repeated_;
    TokenBucket reserved_;
    Table<NetworkBucket> networks_;
    Table<Waiting> waiting_;
};

} // namespace tw::relay
