#pragma once

#include "proxy/relay/keyed_hash.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tw::admin {

/// Who may have a connection: so many in all and of each peer, and a few spare seats for those who
/// find none, so that health checks are answered while others hold all the rest.
///
/// In the spare seats, who has not asked yet leaves for who comes: a health check asks at once.
class Seats {
  public:
    using Number = std::uint64_t;

    /// A page and a scraper need two; a browser opens up to six at once.
    static constexpr std::size_t kUsual = 64;
    /// Of them, those of one IPv4 address or IPv6 /64.
    static constexpr std::size_t kOfPeer = 16;
    static constexpr std::size_t kSpare = 8;
    static constexpr std::size_t kSpareOfPeer = 4;

    /// Where who came is to sit.
    struct Place {
        bool seated = false;
        bool spare = false;             ///< for a health check only
        std::optional<Number> leaves{}; ///< who has to leave for it
    };

    /// Somebody comes; the number is the caller's, and new. Who has to leave is not seated any more.
    [[nodiscard]] Place arrive(Number number, const relay::Source& peer);

    /// Its request is here: it may stay until it is answered.
    void ask(Number number) noexcept;

    /// It is gone; nothing happens when it had no seat.
    void leave(Number number) noexcept;

    [[nodiscard]] std::size_t taken() const noexcept { return guests_.size(); }

  private:
    struct Guest {
        Number number;
        relay::Source peer;
        bool spare;
        bool asked;
    };

    std::vector<Guest> guests_; ///< in order of appearance
};

} // namespace tw::admin
