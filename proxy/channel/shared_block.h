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
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tw::channel {

/// What the relay's process says of a server.
struct ServerFacts {
    /// Longest name a server may have.
    static constexpr std::size_t kMaxName = 64;

    std::array<char, kMaxName + 1> name{}; ///< of the configuration, ending with 0; empty: none
    std::array<base::Endpoint, relay::kMaxListeners> listen{};
    std::uint32_t num_listen = 0;
    base::Endpoint server{};
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
    base::Timestamp started = 0;    ///< when the run began: observers may come and go
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
    explicit SharedRun(base::UniqueFd memory);

    [[nodiscard]] SharedBlock& block() const noexcept { return *block_; }

    [[nodiscard]] unsigned threads() const noexcept { return threads_; }

    /// Memory of one thread's ring, as relay::Ring takes it.
    [[nodiscard]] std::span<std::byte> ring(unsigned thread) const noexcept;

    [[nodiscard]] int descriptor() const noexcept { return memory_.descriptor(); }

  private:
    base::SharedMemory memory_;
    SharedBlock* block_;
    unsigned threads_;
};

/// What the observer's process sees of the relay, and may ask of it. Safe for several threads.
class RelayWindow {
  public:
    /// `ask`: carries a wish for another impairment, as relay::parse_impairment reads it, to the
    ///        relay; false when it cannot.
    RelayWindow(const SharedBlock& block, std::function<bool(const std::string&)> ask)
        : block_{&block}, ask_{std::move(ask)}, impairment_{block.facts.impairment} {}

    /// It only looks at what others forward: nobody can connect to it, and it has no line to impair.
    [[nodiscard]] bool is_tap() const noexcept { return block_->facts.tapped.front() != 0; }

    /// Servers there ever were.
    [[nodiscard]] relay::ServerIndex num_servers() const noexcept;

    /// Of the configuration; empty where there is only one, without a name.
    [[nodiscard]] std::string_view server_name(relay::ServerIndex server) const noexcept {
        return block_->facts.servers[server].shown_name();
    }

    /// It was taken out.
    [[nodiscard]] bool removed(relay::ServerIndex server) const noexcept {
        return block_->facts.servers[server].removed;
    }

    [[nodiscard]] std::span<const base::Endpoint>
    listen_endpoints(relay::ServerIndex server = 0) const noexcept {
        const ServerFacts& facts = block_->facts.servers[server];
        return std::span{facts.listen}.first(facts.num_listen);
    }

    /// A server's address, as people read it.
    [[nodiscard]] std::string server(relay::ServerIndex server = 0) const;

    /// What people call a server: its name and address.
    [[nodiscard]] std::string shown_server(relay::ServerIndex index) const;

    /// One has moved: its number and address.
    void set_server(std::string_view moved);

    [[nodiscard]] const relay::Observation& observation() const noexcept {
        return block_->observation;
    }

    [[nodiscard]] unsigned threads() const noexcept { return block_->facts.threads; }

    /// When the run began.
    [[nodiscard]] base::Timestamp started() const noexcept { return block_->facts.started; }

    [[nodiscard]] relay::Counters counters() const noexcept {
        return relay::totals(block_->observation);
    }

    [[nodiscard]] relay::Counters counters(relay::ServerIndex server) const noexcept {
        return relay::totals_of(block_->observation, server);
    }

    /// Once the relay has gone on with what another one did.
    void look_again();

    /// As last asked for.
    [[nodiscard]] relay::Impairment impairment() const;

    /// False when the relay cannot be asked.
    bool set_impairment(const relay::Impairment& impairment);

  private:
    const SharedBlock* block_;
    std::function<bool(const std::string&)> ask_;
    mutable std::mutex mutex_;
    relay::Impairment impairment_;
    std::map<relay::ServerIndex, std::string> moved_; ///< where they are now
};

/// What RelayWindow::set_server reads.
[[nodiscard]] std::string moved_server(relay::ServerIndex server, const std::string& where);

/// Sessions open now.
[[nodiscard]] inline std::uint64_t open_sessions(const relay::Counters& counters) noexcept {
    // The two are not read at the same moment.
    return counters.sessions_opened - std::min(counters.sessions_closed, counters.sessions_opened);
}

} // namespace tw::channel
