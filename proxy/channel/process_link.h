#pragma once

#include "proxy/base/descriptors.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tw::channel {

/// The messages between the relay's and the observer's process. Copies of datagrams use the rings.
enum class ControlMessage : std::uint8_t {
    // Messages from the observer.
    ready = 1, ///< everything is open, inspection starts
    /// From either process: set this impairment (relay::parse_impairment). The relay sends it when
    /// its configuration changes; the observer then requests it from the relay and records it.
    impair,
    // Messages from the relay, at startup (see ObserverStartup) or later.
    settings,   ///< the next piece of the configuration text
    log_level,  ///< the new log level
    token,      ///< the live page's token; see PageToken
    begin,      ///< end of the startup messages
    server,     ///< a server's new address; see RelayWindow::set_server
    records,    ///< continue in the file of this descriptor; without one, in the next segment
    summary,    ///< write the summary to the file of this descriptor
    report,     ///< write the totals so far
    checkpoint, ///< write the session checkpoints for another relay's observer to this descriptor
    finish,     ///< the relay has ended: read the rest of the rings, write it, exit
    /// To a waiting observer: the previous one has finished; start to inspect. The descriptor, if
    /// any, has its session checkpoints.
    look,
    // Messages from the observer.
    /// The records file was moved or deleted, or the capture with the text "capture": reopen it.
    reopen,
    resync, ///< request a full snapshot of the session with this number in the rings
    // Messages from the relay.
    flight,  ///< write the flight recorder's data
    capture, ///< as `records`, for the capture
    /// From the observer: open the live page's sockets, which it may not do itself. From the
    /// relay: one of the sockets, in order, or a text that says why there is none.
    page,
};

/// The text of a ControlMessage::reopen for the capture.
inline constexpr std::string_view kOfCapture = "capture";

/// One end of the connection between the relay's and the observer's process: ordered messages.
/// Neither end blocks.
class ProcessLink {
  public:
    static constexpr std::size_t kMaxText = 4000;

    struct Message {
        ControlMessage word{};
        std::string text;
        base::UniqueFd descriptor{}; ///< a descriptor sent with the message, if any
    };

    explicit ProcessLink(base::UniqueFd socket) : socket_{std::move(socket)} {}

    /// Creates both ends. Errors: throws std::system_error.
    [[nodiscard]] static std::pair<ProcessLink, ProcessLink> pair();

    /// Sends a message; the peer gets a duplicate of the descriptor. Returns false if the peer is
    /// gone, its buffer is full, or the text is too long.
    // NOLINTNEXTLINE(modernize-use-nodiscard): to whom the other end is gone, receive() tells it
    bool send(ControlMessage word, std::string_view text = {}, int descriptor = -1) const noexcept;

    /// Returns the next message; nullopt if there is none or the peer is gone (see closed()).
    /// Invalid messages are skipped.
    [[nodiscard]] std::optional<Message> receive();

    /// Whether the peer is gone and all of its messages were received.
    [[nodiscard]] bool closed() const noexcept { return closed_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  private:
    base::UniqueFd socket_;
    bool closed_ = false;
};

} // namespace tw::channel
