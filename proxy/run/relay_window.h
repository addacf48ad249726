#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/endpoint.h"
#include "proxy/relay/impairment.h"
#include "proxy/run/shared_block.h"

#include <algorithm>
#include <cstddef>
#include <functional>
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
        : block_{&block}, ask_{std::move(ask)},
          impairment_{block.facts.impairment}, server_{block.facts.tapped.front() == 0
                                                           ? relay::to_string(block.facts.server)
                                                           : block.facts.tapped.data()} {}

    /// It only looks at what others forward: nobody can connect to it, and it has no line to impair.
    [[nodiscard]] bool is_tap() const noexcept { return block_->facts.tapped.front() != 0; }

    [[nodiscard]] std::span<const relay::Endpoint> listen_endpoints() const noexcept {
        return std::span{block_->facts.listen}.first(block_->facts.num_listen);
    }

    /// The server's address, as people read it.
    [[nodiscard]] std::string server() const;

    /// It has moved.
    void set_server(std::string_view server);

    [[nodiscard]] const relay::Observation& observation() const noexcept {
        return block_->observation;
    }

    [[nodiscard]] unsigned threads() const noexcept { return block_->facts.threads; }

    [[nodiscard]] relay::Counters counters() const noexcept {
        return relay::totals(block_->observation);
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
    std::string server_;
};

/// Sessions open now.
[[nodiscard]] inline std::uint64_t open_sessions(const relay::Counters& counters) noexcept {
    // The two are not read at the same moment.
    return counters.sessions_opened - std::min(counters.sessions_closed, counters.sessions_opened);
}

} // namespace tw::run
