#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tw::relay {

/// Totals of one direction.
template <typename Number>
struct DirectionTotals {
    Number datagrams{};   ///< passed on
    Number bytes{};       ///< payload bytes passed on
    Number dropped{};     ///< not passed on: the socket's buffer was full
    Number send_errors{}; ///< not passed on: the system refused (too long, no route, filtered)
    Number copies_lost{}; ///< passed on, but the observer's ring was full
};

/// What a bad line did to one direction's datagrams (see Impairment).
template <typename Number>
struct FateTotals {
    Number datagrams{};    ///< that came while the line was impaired
    Number lost{};         ///< by `loss`
    Number rate_dropped{}; ///< too much was ahead of them for `rate`
    Number queue_full{};   ///< more than the relay lets wait
    Number duplicated{};   ///< sent twice
    Number reordered{};    ///< held back for the next one
};

/// What became of clients that nobody knew. admission_rows() names each.
template <typename Number>
struct AdmissionTotals {
    Number begun{};
    Number proven{};
    Number weak{};
    Number players{};
    Number connless{};
    Number expired{};
    Number displaced{};
    Number flood{};
    Number crowd{};
    Number rate{};
    Number own{};
};

/// Totals of the relay since its start.
template <typename Number>
struct Totals {
    std::array<DirectionTotals<Number>, 2> directions{}; ///< indexed by Direction
    std::array<FateTotals<Number>, 2> fates{};           ///< indexed by Direction
    AdmissionTotals<Number> admission{};
    Number sessions_opened{};  ///< that the observer hears of
    Number sessions_closed{};  ///< of these
    Number sessions_refused{}; ///< datagrams of new clients turned away: max_sessions reached
    Number sessions_failed{};  ///< datagrams of new clients lost: no upstream socket to be had
    Number icmp_refused{};     ///< "port unreachable" from either side; ends nothing
    Number receive_errors{};   ///< other errors of a receive call
    Number truncated{};        ///< datagrams longer than the receive buffer; none is expected
    Number rewritten{};        ///< datagrams of clients that left with other bytes (see Resync)
    Number kernel_dropped{};   ///< arrived while a socket's receive buffer was full
    Number strays{};           ///< passed on to the server: what no server is known to answer
    Number
        repeated_answers{}; ///< to clients' requests, instead of passing these on (see Repeating)
    Number turns{};         ///< of the threads, at least one a second each
};

/// As read at one moment.
using Counters = Totals<std::uint64_t>;

/// A number one thread adds to and any thread reads.
class Counter {
  public:
    void add(std::uint64_t n) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }

    [[nodiscard]] std::uint64_t value() const noexcept {
        return value_.load(std::memory_order_relaxed);
    }

  private:
    std::atomic<std::uint64_t> value_{0};
};

/// One relay thread's own totals.
using LiveCounters = Totals<Counter>;

/// What a row of AdmissionTotals counts.
enum class AdmissionUnit : bool { sessions, datagrams };

struct AdmissionRow {
    std::string_view name;
    AdmissionUnit unit;
    std::string_view sentence;
    std::uint64_t AdmissionTotals<std::uint64_t>::*value;
    Counter AdmissionTotals<Counter>::*live;
};

/// One for each of the counters of AdmissionTotals.
[[nodiscard]] std::span<const AdmissionRow> admission_rows() noexcept;

/// Adds a thread's totals as they are now.
void accumulate(Counters& sum, const LiveCounters& live) noexcept;

/// Counts on from what another relay counted.
void add(LiveCounters& live, const Counters& counters) noexcept;

inline constexpr unsigned kMaxThreads = 64;

/// A server of a relay, counted from 0 in order of appearance; a number is never used again.
using ServerIndex = std::uint16_t;

/// Servers that a relay may have in its life. Sessions and records refer to them by number.
inline constexpr std::size_t kMaxServers = 128;

/// What a relay lets its observer see beside the rings. Zeroed shared memory is a fresh one.
/// What an observer gone mad writes into it harms nothing but what is shown.
struct Observation {
    /// Which observer looks, by a number that is never used again; 0: none (see Tap).
    std::atomic<std::uint32_t> observer{0};
    std::atomic<std::uint32_t> more_servers{0}; ///< there ever were, beside the first
    /// By relay thread, of the first server; then those of the second, and so on. What is no
    /// server's stands with the first.
    std::array<LiveCounters, kMaxThreads * kMaxServers> counters{};

    [[nodiscard]] LiveCounters& of(ServerIndex server, unsigned thread) noexcept {
        return counters[server * std::size_t{kMaxThreads} + thread];
    }
};

/// Totals over all threads and servers; from any thread of either process at any time.
[[nodiscard]] Counters totals(const Observation& observation) noexcept;

/// The same of one server.
[[nodiscard]] Counters totals_of(const Observation& observation, ServerIndex server) noexcept;

} // namespace tw::relay
