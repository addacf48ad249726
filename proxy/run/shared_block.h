#pragma once

#include "proxy/relay/clock.h"
#include "proxy/relay/endpoint.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/observation.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"
#include "proxy/relay/shared_memory.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tw::run {

/// What the relay's process says of a server.
struct ServerFacts {
    /// Longest name a server may have.
    static constexpr std::size_t kMaxName = 64;

    std::array<char, kMaxName + 1> name{}; ///< of the configuration, ending with 0; empty: none
    std::array<relay::Endpoint, relay::kMaxListeners> listen{};
    std::uint32_t num_listen = 0;
    relay::Endpoint server{};
    std::atomic<bool> removed{false};

    /// Lives as long as the shared memory.
    [[nodiscard]] std::string_view shown_name() const noexcept {
        return {name.data(), ::strnlen(name.data(), kMaxName)};
    }
};

/// What the relay's process says of itself before it starts an observer.
struct RelayFacts {
    /// By number; what is there stays, but for `server` and `removed`.
    std::array<ServerFacts, relay::kMaxServers> servers{};
    std::atomic<std::uint32_t> num_servers{0};
    std::uint32_t threads = 0;
    relay::Timestamp started = 0;   ///< when the run began: observers may come and go
    std::array<char, 256> tapped{}; ///< what a tap looks at, ending with 0; empty: it is a relay
    relay::Impairment impairment{}; ///< as it is now
};

/// What the processes of a run share, but for the rings.
struct SharedBlock {
    relay::Observation observation;
    RelayFacts facts; ///< the relay's; the observer reads it at its start
    std::atomic<std::uint32_t>
        numbered_sessions{}; ///< the observer's: records of the next one go on behind it
    std::atomic<std::uint64_t> heartbeats{}; ///< the observer's: grows while it lives
    std::atomic<std::uint64_t> progress{};   ///< the observer's: bytes of records written
};

/// The memory that the two processes of a run share: a block of facts and a ring for each relay thread.
///
/// Layout:  SharedBlock, up to a page; then the rings, of equal size.
class SharedRun {
  public:
    /// Errors: throws std::system_error.
    SharedRun(unsigned threads, std::size_t ring_bytes);
    /// In the observer's process. Errors: throws std::system_error, std::runtime_error for memory of
    /// another shape.
    explicit SharedRun(relay::UniqueFd memory);

    [[nodiscard]] SharedBlock& block() const noexcept { return *block_; }

    [[nodiscard]] unsigned threads() const noexcept { return threads_; }

    /// Memory of one thread's ring, as relay::Ring takes it.
    [[nodiscard]] std::span<std::byte> ring(unsigned thread) const noexcept;

    [[nodiscard]] int descriptor() const noexcept { return memory_.descriptor(); }

  private:
    relay::SharedMemory memory_;
    SharedBlock* block_;
    unsigned threads_;
};

} // namespace tw::run
