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

/// What the relay's process tells the observer about one server.
struct ServerFacts {
    /// The longest name of a server.
    static constexpr std::size_t kMaxName = 64;

    /// Name in the configuration, null-terminated; empty: unnamed.
    std::array<char, kMaxName + 1> name{};
    std::array<base::Endpoint, relay::kMaxListeners> listen{};
    std::uint32_t num_listen = 0;
    base::Endpoint server{};
    std::atomic<bool> removed{false};

    /// The name, as a view of the shared memory.
    [[nodiscard]] std::string_view shown_name() const noexcept {
        return {name.data(), ::strnlen(name.data(), kMaxName)};
    }
};

/// What the relay's process tells the observer about itself. It is written before the observer starts.
struct RelayFacts {
    /// The index is the server's number. Only an entry's `server` and `removed` change later.
    std::array<ServerFacts, relay::kMaxServers> servers{};
    std::atomic<std::uint32_t> num_servers{0};
    std::uint32_t threads = 0;
    base::Timestamp started = 0; ///< when the run started, not the observer
    /// For a tap, where its traffic comes from, as null-terminated text; empty for a relay.
    std::array<char, 256> tapped{};
    relay::Impairment impairment{}; ///< the current impairment
};

/// The memory that the relay's and the observer's process share, except the rings.
struct SharedBlock {
    relay::Observation observation;
    RelayFacts facts; ///< written by the relay, read by the observer at its start
    /// The last session number that an observer gave out. A later observer continues after it.
    std::atomic<std::uint32_t> numbered_sessions{};
    std::atomic<std::uint64_t> heartbeats{}; ///< the observer increases this while it runs
    std::atomic<std::uint64_t> progress{};   ///< bytes of records that the observer has written
    /// What the observer learned about the servers. If the observer is killed, the next one reads it.
    /// Zeros at the start of the run; the relay does not use it.
    alignas(64) std::array<std::byte, std::size_t{68} << 10U> learned{};
};

/// The memory that the relay's and the observer's process share: a SharedBlock and one ring per relay
/// thread.
///
/// Layout:  SharedBlock, padded to whole pages; then the rings, all of the same size.
class SharedRun {
  public:
    /// Creates the memory. Errors: throws std::system_error.
    SharedRun(unsigned threads, std::size_t ring_bytes);
    /// Maps the memory in the observer's process. Errors: throws std::system_error;
    /// std::runtime_error if the memory has another layout.
    explicit SharedRun(base::UniqueFd memory);

    [[nodiscard]] SharedBlock& block() const noexcept { return *block_; }

    [[nodiscard]] unsigned threads() const noexcept { return threads_; }

    /// The memory of a thread's ring, for relay::Ring's constructor.
    [[nodiscard]] std::span<std::byte> ring(unsigned thread) const noexcept;

    [[nodiscard]] int descriptor() const noexcept { return memory_.descriptor(); }

  private:
    base::SharedMemory memory_;
    SharedBlock* block_;
    unsigned threads_;
};

/// The observer's access to the relay's description, counters and impairment. Thread-safe.
class RelayWindow {
  public:
    /// `ask`: asks the relay to set an impairment, in relay::parse_impairment's format; returns false
    /// on failure.
    RelayWindow(const SharedBlock& block, std::function<bool(const std::string&)> ask)
        : block_{&block}, ask_{std::move(ask)}, impairment_{block.facts.impairment} {}

    /// Whether the run is a tap: it captures traffic instead of forwarding it. Clients cannot
    /// connect to a tap, and a tap has no impairment.
    [[nodiscard]] bool is_tap() const noexcept { return block_->facts.tapped.front() != 0; }

    /// The number of servers that were added so far, including removed ones.
    [[nodiscard]] relay::ServerIndex num_servers() const noexcept;

    /// The server's name in the configuration; empty for a single unnamed server.
    [[nodiscard]] std::string_view server_name(relay::ServerIndex server) const noexcept {
        return block_->facts.servers[server].shown_name();
    }

    [[nodiscard]] bool is_removed(relay::ServerIndex server) const noexcept {
        return block_->facts.servers[server].removed;
    }

    [[nodiscard]] std::span<const base::Endpoint>
    listen_endpoints(relay::ServerIndex server = 0) const noexcept {
        const ServerFacts& facts = block_->facts.servers[server];
        return std::span{facts.listen}.first(facts.num_listen);
    }

    /// The server's address as text.
    [[nodiscard]] std::string server(relay::ServerIndex server = 0) const;

    /// The server's name and address as text.
    [[nodiscard]] std::string server_text(relay::ServerIndex index) const;

    /// Sets the new address of a server. `moved`: a text that server_move_text() returned.
    void set_server(std::string_view moved);

    [[nodiscard]] const relay::Observation& observation() const noexcept {
        return block_->observation;
    }

    [[nodiscard]] unsigned threads() const noexcept { return block_->facts.threads; }

    /// The start time of the run.
    [[nodiscard]] base::Timestamp started() const noexcept { return block_->facts.started; }

    [[nodiscard]] relay::Counters counters() const noexcept {
        return relay::totals(block_->observation);
    }

    [[nodiscard]] relay::Counters counters(relay::ServerIndex server) const noexcept {
        return relay::totals_of(block_->observation, server);
    }

    /// Reads the impairment from the shared memory again, because a takeover may have changed it.
    void reload_impairment();

    /// The impairment that was requested last.
    [[nodiscard]] relay::Impairment impairment() const;

    /// Requests this impairment from the relay. Returns false if the relay cannot be reached.
    bool set_impairment(const relay::Impairment& impairment);

  private:
    const SharedBlock* block_;
    std::function<bool(const std::string&)> ask_;
    mutable std::mutex mutex_;
    relay::Impairment impairment_;
    std::map<relay::ServerIndex, std::string> moved_; ///< addresses that set_server() set
};

/// Returns the argument of RelayWindow::set_server() for a server whose address is now `where`.
[[nodiscard]] std::string server_move_text(relay::ServerIndex server, const std::string& where);

/// The number of open sessions.
[[nodiscard]] inline std::uint64_t open_sessions(const relay::Counters& counters) noexcept {
    // The counters are not read at the same moment, so `closed` can be greater than `opened`.
    return counters.sessions_opened - std::min(counters.sessions_closed, counters.sessions_opened);
}

} // namespace tw::channel
