#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/endpoint.h"
#include "proxy/relay/impairment.h"
#include "proxy/run/shared_block.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tw::run {

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

    [[nodiscard]] std::span<const relay::Endpoint>
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
    [[nodiscard]] relay::Timestamp started() const noexcept { return block_->facts.started; }

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

} // namespace tw::run
