#pragma once

#include "proxy/admin/http_server.h"
#include "proxy/admin/log_ring.h"
#include "proxy/admin/wishes.h"
#include "proxy/relay/keyed_hash.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tw::admin {

/// What filtering may take of a turn of the server's thread, for all who look at the log together: whose
/// filter takes longer waits longer himself.
inline constexpr std::chrono::milliseconds kLookTime{5};

/// What one of so many may take.
[[nodiscard]] inline LogRing::Clock::duration look_share(std::size_t many) {
    return LogRing::Clock::duration{kLookTime} / static_cast<std::int64_t>(many == 0 ? 1 : many);
}

/// Those who asked for the records that pass by for some time.
class RecordRequests {
  public:
    using Clock = LogRing::Clock;

    struct Wish {
        LineFilter filter{};
        std::size_t limit = 0;     ///< lines; the newest count
        Clock::time_point until{}; ///< it is answered then
        relay::Source peer{};
        Respond respond;
    };

    void add(Wish wish);

    void clear() { waiting_.clear(); }

    [[nodiscard]] std::size_t size() const { return waiting_.size(); }

    [[nodiscard]] std::size_t of_peer(const relay::Source& peer) const;

    /// Looks through what is new for them.
    void look(const LogRing& log);
    /// Answers those whose time has come, once all was looked at; after some more time says that this
    /// takes too long.
    void answer(const LogRing& log, Clock::time_point now);

  private:
    struct Waiting {
        Wish wish;
        std::uint64_t seen = 0; ///< number of the last line looked at
        LogRing found;
    };

    void look(const LogRing& log, Waiting& waiting) const;

    std::vector<Waiting> waiting_;
};

} // namespace tw::admin
