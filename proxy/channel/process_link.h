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
    ready = 1, ///< the observer has opened everything and starts to inspect
    /// From the relay: the configuration changed the impairment to this text
    /// (relay::parse_impairment); the observer then requests and records that impairment. From the
    /// observer: a request to set this impairment.
    impair,
    // Messages from the relay, at startup (see ObserverStartup) or later.
    settings,  ///< the next piece of the configuration text
    log_level, ///< set this log level
    token,     ///< the live page's token; see PageToken
    begin,     ///< end of the startup messages
    server,    ///< a server's new address; see RelayWindow::set_server
    /// Write further records to this descriptor; without a descriptor, to the next segment.
    records,
    summary,    ///< write the summary to this descriptor
    report,     ///< write the totals so far
    checkpoint, ///< write the session checkpoints for another relay's observer to this descriptor
    /// The relay has ended: inspect the rest of the rings, finish the outputs, and exit.
    finish,
    /// To a waiting observer: the previous observer has finished; start to inspect. The descriptor,
    /// if the message has one, contains the previous observer's session checkpoints.
    look,
    // Messages from the observer.
    /// The observer's records file was moved or deleted; with the text "capture", the capture file
    /// was. The relay must open that file again and send its descriptor.
    reopen,
    /// Make the server send a full snapshot to the session with this number (Event::session).
    resync,
    // Messages from the relay.
    flight,  ///< write the flight recorder's data
    capture, ///< like `records`, for the capture file
    /// From the observer: open the live page's sockets, which the observer may not open itself.
    /// From the relay: one of these sockets, sent in order, or a text that says why there is none.
    page,
};

/// The text of a ControlMessage::reopen message about the capture file.
inline constexpr std::string_view kOfCapture = "capture";

/// One end of the connection between the relay's and the observer's process: ordered messages.
/// Neither end blocks.
class ProcessLink {
  public:
    static constexpr std::size_t kMaxText = 4000;

    struct Message {
        ControlMessage word{};
        std::string text;
        /// The descriptor sent with the message; invalid if there is none.
        base::UniqueFd descriptor{};
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
