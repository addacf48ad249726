#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tw::relay {

/// How a server is made to say everything anew to a session, for an observer that does not know what
/// was said before. What datagrams say is the caller's knowledge: both functions must not wait or
/// allocate. Of answers the relay knows their number, which grows.
struct Resync {
    /// The number of no answer: who knows none gets everything.
    static constexpr std::int32_t kNothing = -1;

    /// Writes a client's datagram anew into `out` so that it says: I know what the server said in the
    /// answer `known`. Returns its size; 0: it says so already, or more, or cannot be written anew.
    std::size_t (*rewrite)(std::span<const std::byte> datagram, std::int32_t known,
                           std::span<std::byte> out) = nullptr;
    /// The number of the answer in a server's datagram, if it says everything.
    std::optional<std::int32_t> (*find_answer)(std::span<const std::byte> datagram) = nullptr;
};

/// What a session's datagrams have to say instead, for one who asked for everything.
///
/// Until the server says everything the client knows nothing. From then on it knows that answer: what
/// it says of older ones, until it has got this one, would make the server build on what the observer
/// never saw, and so would all that follows. Clients that send little are left alone: they would wait
/// for long until they say again what they know.
class ResyncTurn {
  public:
    static constexpr std::uint32_t kBetweenMs = 5000; ///< no session is asked for more often
    static constexpr std::uint32_t kGiveUpMs = 1000;  ///< after it was asked for
    static constexpr std::uint32_t kKnownMs = 2000;   ///< the longest way to a client and back
    static constexpr std::uint32_t kBusyMs = 250; ///< between two datagrams of a client that plays

    // All times are those of one clock, in milliseconds, which wraps.

    /// Asks for it. `heard`: the client's last datagram. False: it was asked for a moment ago.
    bool ask(std::uint32_t now, std::uint32_t heard) noexcept;

    /// Whether datagrams are to be looked at: the client's, and until there is an answer the server's.
    [[nodiscard]] bool wanted() const noexcept { return stage_ != Stage::none; }

    /// The client's next datagram: the answer that it is to know; nothing: it stays as it is.
    [[nodiscard]] std::optional<std::int32_t> turn(std::uint32_t now) noexcept;

    /// It was written anew. True for the first one since it was asked for.
    bool on_written() noexcept;

    /// The server has said everything.
    void on_answer(std::uint32_t now, std::int32_t number) noexcept;

  private:
    enum class Stage : std::uint8_t { none, asking, known };

    std::uint32_t asked_ = 0;
    std::uint32_t since_ = 0; ///< the beginning of the stage
    std::uint32_t heard_ = 0; ///< the client's datagram before
    std::int32_t known_ = Resync::kNothing;
    Stage stage_ = Stage::none;
    bool ever_ = false;
    bool written_ = false;
};

} // namespace tw::relay
