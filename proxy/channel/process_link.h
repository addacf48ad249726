#pragma once

#include "proxy/base/descriptors.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tw::channel {

/// What the two processes of a run say to each other; datagrams go by the rings.
enum class ControlMessage : std::uint8_t {
    // from the observer
    ready = 1, ///< everything is open, it looks from now on
    /// From either: make the lines as bad as the text says (relay::parse_impairment). An observer
    /// that is told so asks the relay for it, and writes it down.
    impair,
    // from the relay, in a greeting (see there) or later
    settings,   ///< the next piece of the configuration's text
    log_level,  ///< how much to log from now on
    token,      ///< the live page's, as PageToken has it
    begin,      ///< the greeting is over
    server,     ///< sessions lead to this address from now on
    records,    ///< go on in the file of this descriptor; without one, in the next segment
    summary,    ///< write the summary to the file of this descriptor
    report,     ///< write the totals so far
    checkpoint, ///< leave in the file of this descriptor what another relay's observer goes on with
    finish,     ///< the relay has ended: read what is left, write, end
    look,       ///< to one that waits: the observer before it has written all, and left what is in
                ///< the file of this descriptor, if there is one
    // from the observer
    reopen, ///< the file of records does not stand under its name any more, or with the text
            ///< "capture" that of the capture: open it again
    resync, ///< ask the server for everything anew, for the session with this number in the rings
    // from the relay
    flight,  ///< write what the flight recorder keeps
    capture, ///< as `records`, of the capture
    page,    ///< from the observer: open the live page's sockets, as it may not any more; from the
             ///< relay: one of them, in their order, or the text says why there is none
};

/// The text of ControlMessage::reopen where it is about the capture.
inline constexpr std::string_view kOfCapture = "capture";

/// One end of the line between the relay's process and the observer's: whole messages, in order.
/// Neither end ever waits for the other.
class ProcessLink {
  public:
    static constexpr std::size_t kMaxText = 4000;

    struct Message {
        ControlMessage word{};
        std::string text;
        base::UniqueFd descriptor{}; ///< that came with it, if any
    };

    explicit ProcessLink(base::UniqueFd socket) : socket_{std::move(socket)} {}

    /// Both ends. Errors: throws std::system_error.
    [[nodiscard]] static std::pair<ProcessLink, ProcessLink> pair();

    /// False when the other end is gone or takes nothing, or the text is too long. The other end
    /// gets a copy of the descriptor, where one is given.
    // NOLINTNEXTLINE(modernize-use-nodiscard): to whom the other end is gone, receive() tells it
    bool send(ControlMessage word, std::string_view text = {}, int descriptor = -1) const noexcept;

    /// The next message; nothing when none is there, or when the other end is gone (see closed()).
    /// What makes no message counts as none.
    [[nodiscard]] std::optional<Message> receive();

    /// The other end is gone, and all it said was received.
    [[nodiscard]] bool closed() const noexcept { return closed_; }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  private:
    base::UniqueFd socket_;
    bool closed_ = false;
};

} // namespace tw::channel
