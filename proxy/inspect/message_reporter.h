#pragma once

#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/reporter.h"
#include "proxy/wire/bodies.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "proxy/wire/secrets.h"

#include <bitset>
#include <cstddef>
#include <optional>

namespace tw::inspect {

/// A message of an accepted packet, with properties that decide how the message is reported.
struct AcceptedMessage {
    const wire::Chunk& chunk;
    const wire::MessageHeader& head;
    /// The message is part of an anti-spoof prelude, so it has no effect.
    bool is_in_prelude = false;
    /// The message is known, and receivers process it (wire::is_processed_by_receivers).
    bool is_expected = false;
    /// The message is a snapshot message, which SnapshotTracker reads.
    bool is_snapshot_message = false;
    /// The body of a snapshot message; nullopt if it cannot be decoded.
    std::optional<wire::SnapshotBody> snapshot_body{};
    /// The message id has other meanings in other server versions, and the version is unknown.
    bool is_meaning_uncertain = false;
    /// The receiver accepts the message: no field is missing or out of range.
    bool is_accepted_by_receiver = true;
};

/// Writes message records, and findings about malformed or unexpected messages.
class MessageReporter {
  public:
    /// `records`: whether to emit a record for each message; if false, only findings are reported.
    /// `shown_commands`: see Options::shown_commands.
    MessageReporter(bool records, const wire::CommandNames* shown_commands,
                    const Observers& observers)
        : emits_records_{records}, shown_commands_{shown_commands}, observers_{&observers} {}

    void report_message(AcceptedMessage& message, const MapTracker& maps,
                        wire::DecodedFields& fields, Reporter& reporter);
    /// Reports a chunk whose message id cannot be read.
    static void report_unreadable_chunk(const wire::Chunk& chunk, const wire::WireError& error,
                                        Reporter& reporter);
    void report_control(const wire::Packet& packet, const wire::Control& control,
                        wire::DecodedFields& fields, Reporter& reporter) const;
    void report_connless(const wire::Packet& packet, wire::DecodedFields& fields,
                         Reporter& reporter) const;

    /// Adds the chat command of an sv_command_info message to the announced commands. Removes the
    /// chat command of an sv_command_info_remove message. Ignores other messages.
    void update_announced_commands(const wire::MessageHeader& head);

    /// Forgets the announced commands, and which unknown messages were reported. Called when a new
    /// connection begins.
    void begin_connection() {
        reported_unknown_messages_.reset();
        announced_commands_.clear();
    }

    [[nodiscard]] std::size_t memory_bytes() const { return announced_commands_.memory_bytes(); }

  private:
    void report_undecoded_message(const AcceptedMessage& message, Reporter& reporter) const;
    /// Reports an unknown message, or a known message that its receiver does not process.
    void report_unexpected_message(const AcceptedMessage& message, Reporter& reporter);
    void report_known_message(AcceptedMessage& message, const MapTracker& maps,
                              wire::DecodedFields& fields, Reporter& reporter) const;

    bool emits_records_;
    const wire::CommandNames* shown_commands_;
    /// Chat commands whose announced description shows that they are harmless.
    wire::CommandNames announced_commands_;
    const Observers* observers_;
    /// Which unknown messages without a UUID were reported: bit 2 * id for game messages, bit
    /// 2 * id + 1 for system messages.
    std::bitset<64> reported_unknown_messages_;
};

} // namespace tw::inspect
