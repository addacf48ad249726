#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/descriptors.h"
#include "proxy/base/endpoint.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace tw::channel {

/// Facts about one server that the relay's process writes for the observer.
struct ServerFacts {
    /// The longest name of a server, in bytes.
    static constexpr std::size_t kMaxNameBytes = 64;

    /// The server's name in the configuration, null-terminated; empty: the server has no name.
    std::array<char, kMaxNameBytes + 1> name{};
    std::array<base::Endpoint, relay::kMaxListeners> listen{};
    std::uint32_t num_listen_endpoints = 0;
    /// The server's address is addresses[current_address], where current_address is 0 or 1. A new
    /// address is written into the unused element before current_address changes, so that the
    /// observer never reads an address while it is written.
    std::array<base::Endpoint, 2> addresses{};
    std::atomic<std::uint32_t> current_address{0};
    std::atomic<bool> removed{false};

    [[nodiscard]] const base::Endpoint& address() const noexcept {
        return addresses[current_address % 2];
    }

    void set_address(const base::Endpoint& address) noexcept {
        const std::uint32_t next = (current_address + 1) % 2;
        addresses[next] = address;
        current_address = next;
    }

    [[nodiscard]] std::string_view name_view() const noexcept {
        return {name.data(), ::strnlen(name.data(), kMaxNameBytes)};
    }

    [[nodiscard]] std::span<const base::Endpoint> listen_endpoints() const noexcept {
        return std::span{listen}.first(num_listen_endpoints);
    }
};

/// Facts that the relay's process writes for the observer.
struct RelayFacts {
    /// Facts about the servers, indexed by server number. After an entry is written, only its
    /// address and the member `removed` change.
    std::array<ServerFacts, relay::kMaxServers> servers{};
    std::atomic<std::uint32_t> num_servers{0};
    std::uint32_t threads = 0;
    base::Timestamp started = 0; ///< when the relay's process started (UTC)
    /// For a tap: where the traffic is captured, as null-terminated text. Empty for a relay.
    std::array<char, 256> tap_description{};
    relay::Impairment impairment{}; ///< the current impairment

    /// Returns whether the run is a tap, which captures traffic instead of forwarding it. A tap has
    /// no listening addresses and no impairment.
    [[nodiscard]] bool is_tap() const noexcept { return tap_description.front() != 0; }

    /// Returns the servers that have been added, including removed servers.
    [[nodiscard]] std::span<const ServerFacts> added_servers() const noexcept {
        return std::span{servers}.first(std::min<std::size_t>(num_servers, servers.size()));
    }

    [[nodiscard]] std::string server_address(relay::ServerIndex server = 0) const;

    [[nodiscard]] std::string server_name_and_address(relay::ServerIndex server) const;
};

/// The memory that the relay's process and the observer's process share, without the rings.
struct SharedProcessData {
    relay::ObserverSharedMemory observer_memory;
    RelayFacts facts; ///< written by the relay's process and read by the observer
    /// The highest session number that an observer has written into records. A later observer
    /// assigns greater numbers.
    std::atomic<std::uint32_t> last_recorded_session{};
    std::atomic<std::uint64_t> heartbeats{}; ///< incremented regularly by a running observer
    std::atomic<std::uint64_t>
        record_bytes{}; ///< number of bytes of records that the observer has written
    /// Memory of the observers' inspect::LearnedSizeTable, initially zero. If an observer is
    /// killed, the next observer still has the learned sizes. The relay does not use them.
    alignas(64) std::array<std::byte, std::size_t{68} << 10U> learned_sizes{};
};

/// The memory that relay and observer processes share: a SharedProcessData and a ring per relay
/// thread.
///
/// Layout:  SharedProcessData, padded to whole pages; then the rings, all of the same size.
class SharedRunMemory {
  public:
    /// Creates the memory. Errors: throws std::system_error.
    SharedRunMemory(unsigned threads, std::size_t ring_bytes);
    /// Maps the memory in the observer's process. Errors: throws std::system_error;
    /// std::runtime_error if the memory is too small or its number of threads is invalid.
    explicit SharedRunMemory(base::UniqueFd memory);

    [[nodiscard]] SharedProcessData& data() const noexcept { return *data_; }

    [[nodiscard]] unsigned num_threads() const noexcept { return threads_; }

    /// Returns the memory of a thread's ring, for relay::Ring's constructor.
    [[nodiscard]] std::span<std::byte> ring_memory(unsigned thread) const noexcept;

    [[nodiscard]] int descriptor() const noexcept { return memory_.descriptor(); }

  private:
    base::SharedMemory memory_;
    SharedProcessData* data_;
    unsigned threads_;
};

[[nodiscard]] inline std::uint64_t num_open_sessions(const relay::Counters& counters) noexcept {
    // The counters are not read at the same time, so sessions_closed can be the greater one.
    return counters.sessions_opened - std::min(counters.sessions_closed, counters.sessions_opened);
}

} // namespace tw::channel
