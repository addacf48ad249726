#pragma once

#include "proxy/base/descriptors.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tw::channel {

/// The messages between the relay's process and the observer's process. Datagrams are not among them:
/// their copies go through the rings (see relay::Ring).
enum class ControlMessage : std::uint8_t {
    // Messages from the observer.
    ready = 1, ///< the observer has opened all files and sockets and starts to inspect
    /// The text is an impairment (relay::parse_impairment). From the relay: the configuration changed to
    /// this impairment, and the observer then requests and records it. From the observer: a request to
    /// set this impairment.
    impair,
    // Messages from the relay, at startup (see ObserverStartup) or later.
    settings,  ///< the next piece of the configuration text
    log_level, ///< set this log level
    token,     ///< the access token of the live page; see PageToken
    begin,     ///< all startup messages were sent
    server,    ///< a server's new address; see RelayWindow::set_server
    /// Continue the output that the text names (see kRecords) in the file of the descriptor; without a
    /// descriptor, in the next segment.
    file,
    report, ///< write the totals so far
    /// Write the session checkpoints, for another relay's observer, to the descriptor of this message.
    checkpoint,
    /// The relay has stopped. Inspect the rest of the rings, finish the outputs, and exit.
    finish,
    /// To an observer that waits: the previous observer has finished, so start to inspect. If the
    /// message has a descriptor, its file contains the previous observer's session checkpoints.
    start_inspecting,
    // Messages from the observer.
    /// The file of the output that the text names was moved or deleted. Asks for `file`.
    reopen,
    /// Make the server send a full snapshot to the session with this number (Event::session).
    resync,
    // Messages from the relay.
    flight, ///< write the data of the flight recorder to a file
    /// From the observer: open the live page's sockets, which the observer may not open itself.
    /// From the relay: one of these sockets, in the order of addresses, or a text that says why it could
    /// not be opened.
    page,
};

/// The names of outputs in the messages `file` and `reopen`.
inline constexpr std::string_view kRecords = "records";
inline constexpr std::string_view kCapture = "capture";
inline constexpr std::string_view kSummary = "summary";

/// One end of the connection between the relay's and the observer's process. Messages arrive in order.
/// No function blocks.
class ProcessLink {
  public:
    /// The longest text of a message, in bytes.
    static constexpr std::size_t kMaxText = 4000;

    struct Message {
        ControlMessage kind{};
        std::string text;
        /// The descriptor that was sent with the message; invalid if there is none.
        base::UniqueFd descriptor{};
    };

    explicit ProcessLink(base::UniqueFd socket) : socket_{std::move(socket)} {}

    /// Creates both ends. Errors: throws std::system_error.
    [[nodiscard]] static std::pair<ProcessLink, ProcessLink> pair();

    /// Sends a message. The other process gets a duplicate of the descriptor. Returns false if the other
    /// process is gone, its buffer is full, or the text is too long.
    // NOLINTNEXTLINE(modernize-use-nodiscard): callers learn from closed() that the other end is gone
    bool send(ControlMessage kind, std::string_view text = {}, int descriptor = -1) const noexcept;

    /// Returns the next message; nullopt if there is none or the other process is gone (see closed()).
    [[nodiscard]] std::optional<Message> receive();

    /// Whether the other process is gone and all of its messages were received.
    [[nodiscard]] bool closed() const noexcept { return closed_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  private:
    base::UniqueFd socket_;
    bool closed_ = false;
};

} // namespace tw::channel
