#pragma once

#include "proxy/relay/ring.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tw::relay {

/// What the tap remembers of one session. Stays where it is from its first datagram to its close.
struct TapSession {
    std::uint32_t id = 0;
    Timestamp opened = 0;
    Endpoint client;
    Endpoint upstream;
    Endpoint server;
    std::uint16_t server_index = 0;
    std::uint32_t opened_for = 0;        ///< the observer there was when it began; 0: none
    std::uint32_t announced_to = 0;      ///< the observer that knows it; 0: none
    std::array<std::uint64_t, 2> lost{}; ///< copies dropped since the last gap event, by direction

    // Of Watch.
    TapSession* older = nullptr;
    TapSession* newer = nullptr;
    bool listed = false;
    bool aside = false;
    bool aside_told = false; ///< the observer knows that it is
};

/// Which sessions the observer is shown while it cannot see all: those that have been there for
/// longest. Owns nothing, allocates nothing.
class Watch {
  public:
    /// A new one: the newest. Set aside where others are.
    void add(TapSession& session) noexcept;
    void remove(TapSession& session) noexcept;

    /// Of one that is shown: nothing of it is, until it is brought back.
    void set_aside(TapSession& session) noexcept;
    /// Shows so many more again, the oldest first.
    void bring_back(std::size_t count) noexcept;

    /// How many can be shown when so much of the ring is in use: fewer and fewer, the fuller it is,
    /// so that it gets no fuller as soon as those that are left are few enough.
    [[nodiscard]] std::size_t affordable(std::size_t backlog, std::size_t capacity) const noexcept;

    /// The newest that is shown.
    [[nodiscard]] TapSession* newest() const noexcept { return shown_.newest; }

    [[nodiscard]] std::size_t num_shown() const noexcept { return shown_.size; }

    [[nodiscard]] std::size_t num_aside() const noexcept { return aside_.size; }

  private:
    struct List {
        TapSession* oldest = nullptr;
        TapSession* newest = nullptr;
        std::size_t size = 0;

        void push_newest(TapSession& session) noexcept;
        void push_oldest(TapSession& session) noexcept;
        void remove(TapSession& session) noexcept;
    };

    [[nodiscard]] List& list_of(const TapSession& session) noexcept {
        return session.aside ? aside_ : shown_;
    }

    List shown_;
    List aside_;
};

} // namespace tw::relay
