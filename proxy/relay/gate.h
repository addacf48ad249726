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

    /// Whether less than so many parts of the whole are left.
    [[nodiscard]] bool is_below(std::uint32_t parts, std::uint32_t whole) const noexcept {
        return std::uint64_t{tokens_} * whole < std::uint64_t{capacity_} * parts;
    }

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

/// Stands before the table of sessions: of the datagrams that belong to none it lets few enough
/// begin one that this costs the others nothing, and as many real clients as it can tell.
///
/// Each address has a bucket of tokens. All together have one that lets an unproven session live
/// for the longest round trip before it has to leave for the next. While that one is low, only who
/// repeats itself as a waiting client does is let in, saying the same and nothing else in between,
/// and not who was let in before and proved nothing. The lower it is, the more often a client has to
/// have repeated itself, up to three times: so what is left is for those who stand out most.
///
/// Memory is fixed, 16 MiB, and touched only as far as strangers come. One thread's.
class Gate {
  public:
    /// `hash`: where in its tables an address stands; tests choose one that is always the same.
    Gate(const AdmissionLimits& limits, const AdmissionPools& pools,
         const KeyedHash& hash = KeyedHash::random());

    /// Whether an address may send another datagram that belongs to no session.
    [[nodiscard]] bool may_knock(const Endpoint& client, std::uint32_t now_ms) noexcept;

    /// Whether a datagram may begin a session of that standing.
    [[nodiscard]] bool may_enter(const Endpoint& client, Standing standing,
                                 std::span<const std::byte> datagram,
                                 std::uint32_t now_ms) noexcept;

    /// The client has proved itself: it is no stranger when it comes again.
    void forgive(const Endpoint& client) noexcept;

  private:
    static constexpr std::size_t kWays = 4;
    static constexpr std::size_t kSources = std::size_t{1} << 14U;
    static constexpr std::size_t kWaiting = std::size_t{1} << 20U;

    struct SourceEntry {
        std::uint32_t tag;
        std::uint32_t tokens;
        std::uint32_t filled_ms;
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

    [[nodiscard]] Waiting& waiting_of(const Endpoint& client, std::uint32_t now_ms) noexcept;
    /// Counts a datagram of a stranger that waits.
    void note(Waiting& waiting, std::span<const std::byte> datagram,
              std::uint32_t now_ms) const noexcept;
    [[nodiscard]] std::uint32_t repeats_wanted() const noexcept;

    AdmissionLimits limits_;
    KeyedHash hash_;
    TokenBucket entries_;
    TokenBucket requests_;
    Table<SourceEntry> sources_;
    Table<Waiting> waiting_;
};

} // namespace tw::relay
