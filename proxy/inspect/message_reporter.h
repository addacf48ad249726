#pragma once

#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/reporter.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "proxy/wire/secrets.h"

#include <bitset>
#include <cstddef>

namespace tw::inspect {

/// One accepted message, as it is reported.
struct MessageAtHand {
    const wire::Chunk& chunk;
    const wire::MessageHead& head;
    bool prelude = false;  ///< of an anti-spoof prelude: shown, nothing follows from it
    bool expected = false; ///< known, from the side that sends it, of the right kind
    bool tracked = false;  ///< a snapshot that the tracker reads
    bool likely = false;   ///< its meaning depends on the server's version, which is not known
    bool is_taken = true;  ///< its receiver takes it: no field is missing or out of range
};

/// Makes records of messages, and findings of what is odd about them.
class MessageReporter {
  public:
    /// `records`: whether messages are handed out, or only read for findings. `shown_commands`: chat
    /// commands whose arguments are no secret; null: none besides those that are harmless everywhere.
    MessageReporter(bool records, const wire::CommandNames* shown_commands,
                    const Observers& observers)
        : records_{records}, shown_commands_{shown_commands}, observers_{&observers} {}

    void report(MessageAtHand& message, const MapTracker& maps, wire::DecodedFields& fields,
                Reporter& reporter);
    /// A chunk whose message id cannot be read.
    static void report_invalid(const wire::Chunk& chunk, const wire::WireError& error,
                               Reporter& reporter);
    void report_control(const wire::Packet& packet, const wire::Control& control,
                        wire::DecodedFields& fields, Reporter& reporter) const;
    void report_connless(const wire::Packet& packet, wire::DecodedFields& fields,
                         Reporter& reporter) const;

    /// A message of the server that nobody else acts on: sv_command_info, by which it announces a chat
    /// command, and its opposite.
    void on_other(const wire::MessageHead& head);

    /// A new connection: unknown messages are reported again, and the server announces its commands.
    void restart() {
        unknown_.reset();
        announced_.clear();
    }

    [[nodiscard]] std::size_t memory_bytes() const { return announced_.memory_bytes(); }

  private:
    void report_raw(const MessageAtHand& message, Reporter& reporter) const;
    void report_unknown(const MessageAtHand& message, Reporter& reporter);
    static void report_unexpected(const MessageAtHand& message, Reporter& reporter);
    void report_known(MessageAtHand& message, const MapTracker& maps, wire::DecodedFields& fields,
                      Reporter& reporter) const;

    bool records_;
    const wire::CommandNames* shown_commands_;
    wire::CommandNames announced_; ///< chat commands that this server describes as harmless
    const Observers* observers_;
    std::bitset<64> unknown_; ///< classic ids that were reported, game and system
};

} // namespace tw::inspect
