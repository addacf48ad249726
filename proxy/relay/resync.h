#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::relay {

/// How a server is made to say everything anew to a session, for an observer that does not know what
/// was said before. What datagrams say is the caller's knowledge: both functions must not wait or
/// allocate.
struct Resync {
    /// Writes a client's datagram anew into `out` so that the server answers with everything.
    /// Returns its size; 0: this one cannot be.
    std::size_t (*rewrite)(std::span<const std::byte> datagram, std::span<std::byte> out) = nullptr;
    /// Whether a server's datagram is that answer.
    bool (*is_answer)(std::span<const std::byte> datagram) = nullptr;
};

/// Which of a session's datagrams is the one to write anew, for one who asked for it.
///
/// The server takes what the client said last before it answers; answers come at even intervals, and
/// some datagrams of the client between two of them. So the one to write anew is one that comes some
/// while after an answer. Where it had no effect, because another one overtook it, all of a short
/// while are, a few times. Clients that send little are left alone: they would wait for long until
/// they say again what they know.
class ResyncTurn {
  public:
    static constexpr std::uint32_t kBetweenMs = 5000; ///< no session is asked for more often
    static constexpr std::uint32_t kGiveUpMs = 1000;  ///< after it was asked for
    static constexpr std::uint32_t kAnswerMs = 100;   ///< the time an answer takes
    static constexpr std::uint32_t kQuietMs = 20;     ///< since the server's last datagram
    static constexpr std::uint32_t kImpatientMs = 60; ///< then any datagram will do
    static constexpr std::uint32_t kRunMs = 45;       ///< longer than between two answers
    static constexpr std::uint32_t kBusyMs = 250; ///< between two datagrams of a client that plays
    static constexpr int kTries = 4;

    // All times are those of one clock, in milliseconds, which wraps.

    /// Asks for it. `heard`: the client's last datagram. False: it was asked for a moment ago.
    bool ask(std::uint32_t now, std::uint32_t heard) noexcept;

    [[nodiscard]] bool wanted() const noexcept { return wanted_; }

    /// The client's next datagram: whether it is to be written anew. `answered`: the server's last.
    [[nodiscard]] bool is_turn(std::uint32_t now, std::uint32_t answered) noexcept;

    /// It was written anew.
    void on_written(std::uint32_t now) noexcept;

    /// The server has said everything.
    void on_answer() noexcept { wanted_ = false; }

  private:
    std::uint32_t asked_ = 0;
    std::uint32_t since_ = 0; ///< the first datagram of the last try
    std::uint32_t heard_ = 0; ///< the client's datagram before
    std::uint8_t tries_ = 0;
    bool wanted_ = false;
    bool ever_ = false;
};

} // namespace tw::relay
