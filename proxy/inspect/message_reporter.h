#pragma once

#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/reporter.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "proxy/wire/secrets.h"

#include <bitset>
#include <cstddef>

namespace tw::inspect {

/// A message of an accepted packet, and what is known about it for reporting.
struct AcceptedMessage {
    const wire::Chunk& chunk;
    const wire::MessageHead& head;
    bool prelude = false; ///< the message is part of an anti-spoof prelude, so it has no effect
    /// The message is known, and wire::is_expected() holds for it.
    bool expected = false;
    bool tracked = false; ///< the message is a snapshot message, which SnapshotTracker reads
    /// The message's meaning depends on the server's version, which is unknown.
    bool likely = false;
    bool is_taken = true; ///< the receiver accepts the message: no field is missing or out of range
};

/// Writes message records, and findings about malformed or unexpected messages.
class MessageReporter {
  public:
    /// `records`: whether to emit a record for each message; if false, only findings are reported.
    /// `shown_commands`: see Options::shown_commands.
    MessageReporter(bool records, const wire::CommandNames* shown_commands,
                    const Observers& observers)
        : records_{records}, shown_commands_{shown_commands}, observers_{&observers} {}

    void report(AcceptedMessage& message, const MapTracker& maps, wire::DecodedFields& fields,
                Reporter& reporter);
    /// Reports a chunk whose message id cannot be read.
    static void report_invalid(const wire::Chunk& chunk, const wire::WireError& error,
                               Reporter& reporter);
    void report_control(const wire::Packet& packet, const wire::Control& control,
                        wire::DecodedFields& fields, Reporter& reporter) const;
    void report_connless(const wire::Packet& packet, wire::DecodedFields& fields,
                         Reporter& reporter) const;

    /// Adds a chat command that the server announces (sv_command_info), or removes one that the server
    /// removes (sv_command_info_remove). Ignores other messages.
    void on_other(const wire::MessageHead& head);

    /// A new connection begins: unknown messages are reported again, and announced commands are
    /// forgotten.
    void restart() {
        unknown_.reset();
        announced_.clear();
    }

    [[nodiscard]] std::size_t memory_bytes() const { return announced_.memory_bytes(); }

  private:
    void report_raw(const AcceptedMessage& message, Reporter& reporter) const;
    void report_unknown(const AcceptedMessage& message, Reporter& reporter);
    static void report_unexpected(const AcceptedMessage& message, Reporter& reporter);
    void report_known(AcceptedMessage& message, const MapTracker& maps, wire::DecodedFields& fields,
                      Reporter& reporter) const;

    bool records_;
    const wire::CommandNames* shown_commands_;
    /// Chat commands whose announced description shows that they are harmless.
    wire::CommandNames announced_;
    const Observers* observers_;
    /// Ids of unknown classic messages, game and system, that were reported.
    std::bitset<64> unknown_;
};

} // namespace tw::inspect
