#pragma once

#include "proxy/base/descriptors.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tw::channel {

/// The messages between the relay's process and the observer's process. Copies of datagrams are not
/// sent as messages, but through the rings (see relay::Ring).
enum class ControlMessage : std::uint8_t {
    // Messages from the relay.
    startup = 1, ///< the first message: the descriptor is memory with an archived ObserverStartup
    log_level,   ///< the text is the log level to set
    page_token,  ///< the text contains the token of the live page; see PageToken
    page_socket, ///< the descriptor is the socket of the live page's next address
    reopen_outputs, ///< open the outputs' paths again, because their files may have been moved away
    write_summaries,        ///< write a summary record of each open session
    write_flight_recording, ///< write the latest traffic (see capture::FlightRecorder) to a file
    /// Start to inspect, because the previous observer has finished. Sent to an observer that waits
    /// for the previous observer. The descriptor, if any, is a file with the previous observer's
    /// session checkpoints.
    start_inspecting,
    /// Save the state of all sessions, for the next relay's observer, in the descriptor's file.
    save_checkpoint,
    /// The relay has stopped. Inspect the rest of the rings, finish the outputs, and exit.
    finish,
    /// The text contains an impairment, for relay::parse_impairment(). From the relay: it has set
    /// this impairment, which the observer must record. From the observer: a request to set it.
    impairment,
    // Messages from the observer.
    ready, ///< the observer has opened all files and sockets and starts to inspect
    /// Make the server send a full snapshot to a session. The text is the value of RelayEvent::session.
    request_full_snapshot,
};

/// One end of the connection between the relay's process and the observer's process. Messages
/// arrive in order. No function blocks.
class ProcessLink {
  public:
    static constexpr std::size_t kMaxTextBytes = 4000;

    struct Message {
        ControlMessage kind{};
        std::string text;
        /// The descriptor that was sent with the message; invalid if none was sent.
        base::UniqueFd descriptor{};
    };

    explicit ProcessLink(base::UniqueFd socket) : socket_{std::move(socket)} {}

    /// Creates both ends of a connection. Errors: throws std::system_error.
    [[nodiscard]] static std::pair<ProcessLink, ProcessLink> create_pair();

    /// Sends a message. The other process gets a duplicate of the descriptor; −1: the message has
    /// no descriptor. Returns false if the other process is gone, its buffer is full, or the text
    /// is too long.
    // NOLINTNEXTLINE(modernize-use-nodiscard): callers check is_closed()
    bool send(ControlMessage kind, std::string_view text = {}, int descriptor = -1) const noexcept;

    /// Returns the next message; nullopt if no message has arrived or is_closed() is true.
    [[nodiscard]] std::optional<Message> receive();

    /// Returns whether the other process is gone and all of its messages were received.
    [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  private:
    base::UniqueFd socket_;
    bool is_closed_ = false;
};

} // namespace tw::channel
