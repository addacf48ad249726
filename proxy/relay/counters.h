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
    Number datagrams{}; ///< datagrams that were forwarded
    Number bytes{};     ///< payload bytes of the forwarded datagrams
    Number dropped{};   ///< datagrams dropped because the socket's send buffer was full
    /// Datagrams that the system refused to send (too long, no route, filtered).
    Number send_errors{};
    Number copies_lost{}; ///< datagrams whose copy did not fit into the observer's ring
};

/// Counts what an impairment did to the datagrams of one direction (see Impairment).
template <typename Number>
struct ImpairmentTotals {
    Number datagrams{};         ///< datagrams received while an impairment was set
    Number dropped_by_chance{}; ///< datagrams dropped because of the setting `loss`
    Number dropped_by_rate{};   ///< datagrams dropped because of `rate`: too many bytes were queued
    Number dropped_by_full_queue{}; ///< datagrams dropped because the relay's queue was full
    Number duplicated{};            ///< datagrams sent twice
    Number reordered{}; ///< datagrams that were sent after a later datagram of their session
};

/// Counts the sessions of new clients that were admitted, and the datagrams that were rejected.
/// new_client_counter_table() describes each counter.
template <typename Number>
struct NewClientTotals {
    Number begun_sessions{};
    Number verified_sessions{};
    Number unverified_player_sessions{};
    Number player_sessions{};
    Number connless_sessions{};
    Number expired_sessions{};
    Number displaced_sessions{};
    Number rejected_by_network_limit{};
    Number rejected_among_too_many{};
    Number rejected_by_session_rate{};
    Number rejected_own_address{};
    Number rejected_by_address_limit{};
};

/// The relay's counters. They count from the start of the relay.
template <typename Number>
struct Totals {
    std::array<DirectionTotals<Number>, 2> directions{};  ///< indexed by Direction
    std::array<ImpairmentTotals<Number>, 2> impairment{}; ///< indexed by Direction
    NewClientTotals<Number> new_clients{};
    Number sessions_opened{}; ///< sessions that were reported to the observer
    Number sessions_closed{}; ///< sessions whose end was reported to the observer
    /// Datagrams of new clients that were rejected because max_sessions was reached.
    Number datagrams_without_session{};
    /// Datagrams of new clients that were lost because no upstream socket could be opened.
    Number datagrams_without_socket{};
    Number icmp_refused{};   ///< ICMP "port unreachable" messages from clients or servers
    Number receive_errors{}; ///< failed receive calls, except those that icmp_refused counts
    /// Received datagrams that were longer than the receive buffer; expected to be 0.
    Number truncated_datagrams{};
    /// Clients' datagrams that the relay changed before it forwarded them (see ResyncFunctions).
    Number rewritten_datagrams{};
    Number kernel_dropped{}; ///< datagrams that did not fit into a socket's receive buffer
    /// Forwarded client datagrams of a kind that servers do not answer.
    Number unanswerable_datagrams{};
    Number repeated_answers{}; ///< requests that the relay answered with an earlier answer
    /// Loop iterations of all relay threads; each thread does at least one a second.
    Number loop_iterations{};
};

using Counters = Totals<std::uint64_t>;

/// A counter that one thread increments and that any thread may read.
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

/// The counters of one relay thread for one server. They change while the thread runs.
using LiveCounters = Totals<Counter>;

enum class NewClientCounterUnit : bool { sessions, datagrams };

struct NewClientCounterInfo {
    std::string_view name; ///< the counter's name in metrics and in the page's state
    NewClientCounterUnit unit;
    std::string_view sentence; ///< what happened to the sessions or datagrams
    std::uint64_t NewClientTotals<std::uint64_t>::*value;
};

[[nodiscard]] std::span<const NewClientCounterInfo> new_client_counter_table() noexcept;

/// Adds to `live` the counters of another relay, which handed its sessions over to this relay.
void add_counters(LiveCounters& live, const Counters& counters) noexcept;

inline constexpr unsigned kMaxThreads = 64;

/// The number of a server within its relay. Servers are numbered from 0 in the order in which they
/// are added; numbers are not reused.
using ServerIndex = std::uint16_t;

/// The maximum number of servers in a relay's lifetime, including removed servers.
inline constexpr std::size_t kMaxServers = 128;

/// Memory that relay and observer share, in addition to the rings. Zeroed memory is a valid initial
/// state. An observer that writes wrong values here can only falsify the displayed counters.
struct ObserverSharedMemory {
    /// The number of the current observer, never reused; 0 while no observer runs.
    std::atomic<std::uint32_t> observer{0};
    /// Number of servers that were added after the first one.
    std::atomic<std::uint32_t> num_added_servers{0};
    /// The counters of all threads for the first server, then of all threads for the second, and so
    /// on. Events that belong to no server are counted for the first server.
    std::array<LiveCounters, kMaxThreads * kMaxServers> counters{};

    [[nodiscard]] LiveCounters& counters_of(ServerIndex server, unsigned thread) noexcept {
        return counters[server * std::size_t{kMaxThreads} + thread];
    }
};

/// Returns the sums over all threads and servers. Any thread of the relay or the observer may call
/// it.
[[nodiscard]] Counters totals(const ObserverSharedMemory& observation) noexcept;

/// Returns the sums of one server's counters over all threads.
[[nodiscard]] Counters totals_of(const ObserverSharedMemory& observation,
                                 ServerIndex server) noexcept;

} // namespace tw::relay
