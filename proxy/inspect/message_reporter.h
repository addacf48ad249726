#pragma once

#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/reporter.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "proxy/wire/secrets.h"

#include <bitset>
#include <cstddef>

namespace tw::inspect {

/// One accepted message, and how to report it.
struct AcceptedMessage {
    const wire::Chunk& chunk;
    const wire::MessageHead& head;
    bool prelude = false; ///< part of a server's anti-spoof prelude: recorded, but has no effect
    /// The message is known, comes from the side that may send it, and is vital if it has to be.
    bool expected = false;
    bool tracked = false; ///< it is a snapshot message, which SnapshotTracker reads
    bool likely = false;  ///< its meaning depends on the server's version, which is unknown
    bool is_taken = true; ///< the receiver accepts it: no field is missing or out of range
};

/// Writes message records, and findings about malformed or unexpected messages.
class MessageReporter {
  public:
    /// `records`: emit a record for each message; if false, messages are only checked for findings.
    /// `shown_commands`: chat commands whose arguments are no secret; null: only the built-in
    /// harmless ones.
    MessageReporter(bool records, const wire::CommandNames* shown_commands,
                    const Observers& observers)
        : records_{records}, shown_commands_{shown_commands}, observers_{&observers} {}

    void report(AcceptedMessage& message, const MapTracker& maps, wire::DecodedFields& fields,
                Reporter& reporter);
    /// A chunk whose message id cannot be read.
    static void report_invalid(const wire::Chunk& chunk, const wire::WireError& error,
                               Reporter& reporter);
    void report_control(const wire::Packet& packet, const wire::Control& control,
                        wire::DecodedFields& fields, Reporter& reporter) const;
    void report_connless(const wire::Packet& packet, wire::DecodedFields& fields,
                         Reporter& reporter) const;

    /// Learns or forgets a chat command that the server announces (sv_command_info) or removes
    /// (sv_command_info_remove). Ignores other messages.
    void on_other(const wire::MessageHead& head);

    /// A new connection: unknown messages are reported again, and announced commands are forgotten.
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
    std::bitset<64> unknown_; ///< reported ids of unknown classic messages, game and system
};

} // namespace tw::inspect
