#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/door.h"
#include "proxy/relay/impairer.h"
#include "proxy/relay/listener.h"
#include "proxy/relay/session.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tw::relay {

/// The way datagrams take while lines are impaired: each waits, if only for a moment, and is shown
/// to the observer when it is sent on. So the observer sees what the receiver gets, and nothing of
/// what the line loses. One thread's; it never waits itself.
class ImpairedPath {
  public:
    using Time = Impairer::Time;

    /// All have to outlive it.
    ImpairedPath(const std::vector<Listener>& listeners, Tap& tap, LiveCounters& counters)
        : listeners_{&listeners}, tap_{&tap}, counters_{&counters} {}

    [[nodiscard]] bool active() const noexcept { return impairer_ != nullptr; }

    /// As last set. Precondition: active.
    [[nodiscard]] const Impairment& impairment() const noexcept { return impairer_->impairment(); }

    /// Makes all lines as bad as this, from now on; what waits is sent on at once. The sessions are
    /// to be shown to begin_anew after it.
    void set(const Impairment& impairment);

    static void begin_anew(Sessions& sessions) {
        sessions.for_each([](Session& session) { session.lines.reset(); });
    }

    /// Takes a datagram of the session, which has to live as long as anything of it waits.
    /// Precondition: active.
    void accept(Session& session, Direction direction, std::span<const std::byte> bytes, Time now);

    /// Sends on what has to leave by now; returns when the next one has to.
    /// Precondition: active.
    std::optional<Time> send_due(Time now);

  private:
    void send(Session& session, Direction direction, std::span<const std::byte> bytes,
              Timestamp now);

    const std::vector<Listener>* listeners_;
    Tap* tap_;
    LiveCounters* counters_;
    std::unique_ptr<Impairer> impairer_; ///< null unless lines are impaired
};

} // namespace tw::relay
