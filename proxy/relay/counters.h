#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tw::relay {

template <typename Number>
struct DirectionTotals {
    Number datagrams{}; ///< datagrams forwarded
    Number bytes{};     ///< payload bytes forwarded
    Number dropped{};   ///< datagrams not forwarded: the socket's send buffer was full
    /// Datagrams that the system refused to send (too long, no route, filtered).
    Number send_errors{};
    Number copies_lost{}; ///< datagrams whose copy did not fit into the observer's ring
};

/// How an impairment affected one direction's datagrams (see Impairment).
template <typename Number>
struct ImpairmentTotals {
    Number datagrams{};    ///< datagrams received while an impairment was set
    Number lost{};         ///< datagrams dropped because of the setting `loss`
    Number rate_dropped{}; ///< datagrams dropped because of `rate`: too many bytes were queued
    Number queue_full{};   ///< datagrams dropped because the relay's queue was full
    Number duplicated{};   ///< datagrams sent twice
    Number reordered{};    ///< datagrams sent after the session's next datagram
};

/// How new clients were admitted or rejected. admission_rows() describes each counter.
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

/// Totals since the start of the relay.
template <typename Number>
struct Totals {
    std::array<DirectionTotals<Number>, 2> directions{};  ///< indexed by Direction
    std::array<ImpairmentTotals<Number>, 2> impairment{}; ///< indexed by Direction
    AdmissionTotals<Number> admission{};
    Number sessions_opened{}; ///< sessions that were reported to the observer
    Number sessions_closed{}; ///< sessions whose end was reported to the observer
    /// Datagrams of new clients, rejected because max_sessions was reached.
    Number sessions_refused{};
    /// Datagrams of new clients, lost because no upstream socket could be opened.
    Number sessions_failed{};
    Number icmp_refused{};   ///< ICMP "port unreachable" messages from clients or servers
    Number receive_errors{}; ///< receive calls that failed for another reason than ICMP
    Number truncated{};      ///< datagrams longer than the receive buffer; expected to be 0
    Number rewritten{}; ///< clients' datagrams that were forwarded with other bytes (see Resync)
    Number kernel_dropped{}; ///< datagrams that did not fit into a socket's receive buffer
    Number strays{};         ///< client datagrams that were forwarded, but servers do not answer
    Number
        repeated_answers{};   ///< answers that the relay repeated instead of forwarding the request
    Number loop_iterations{}; ///< loop iterations of the relay threads, at least one a second each
};

/// A copy of the totals at one moment.
using Counters = Totals<std::uint64_t>;

/// A number that one thread increments and any thread reads.
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

/// The unit of a row of AdmissionTotals.
enum class AdmissionUnit : bool { sessions, datagrams };

/// The description of one counter of AdmissionTotals.
struct AdmissionRow {
    std::string_view name;
    AdmissionUnit unit;
    std::string_view sentence;
    std::uint64_t AdmissionTotals<std::uint64_t>::*value;
    Counter AdmissionTotals<Counter>::*live;
};

/// One row for each counter of AdmissionTotals.
[[nodiscard]] std::span<const AdmissionRow> admission_rows() noexcept;

/// Adds a thread's current totals to `sum`.
void accumulate(Counters& sum, const LiveCounters& live) noexcept;

/// Adds the totals that another relay counted before it handed over to this one.
void add(LiveCounters& live, const Counters& counters) noexcept;

inline constexpr unsigned kMaxThreads = 64;

/// The number of a server within its relay, from 0 in the order of adding. Numbers are not reused.
using ServerIndex = std::uint16_t;

/// The most servers that a relay can have in its lifetime, because numbers are not reused.
inline constexpr std::size_t kMaxServers = 128;

/// Shared memory between relay and observer, in addition to the rings. Zeroed memory is a valid
/// initial state. A misbehaving observer that writes into it can only falsify what is displayed.
struct Observation {
    /// The number of the current observer, never reused; 0 while there is none (see Tap).
    std::atomic<std::uint32_t> observer{0};
    std::atomic<std::uint32_t> more_servers{0}; ///< servers added after the first one
    /// The counters of each relay thread for the first server, then for the second, and so on. Events
    /// that belong to no server are counted for the first.
    std::array<LiveCounters, kMaxThreads * kMaxServers> counters{};

    [[nodiscard]] LiveCounters& of(ServerIndex server, unsigned thread) noexcept {
        return counters[server * std::size_t{kMaxThreads} + thread];
    }
};

/// Sums the totals over all threads and servers. Any thread of either process may call it.
[[nodiscard]] Counters totals(const Observation& observation) noexcept;

/// Sums the totals of one server over all threads.
[[nodiscard]] Counters totals_of(const Observation& observation, ServerIndex server) noexcept;

} // namespace tw::relay
