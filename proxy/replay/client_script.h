#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/wire/message.h"
#include "proxy/wire/secrets.h"
#include "snapshot/item.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::replay {

/// A message that a captured client sent while it was in the game.
struct ScriptStep {
    enum class Kind : std::uint8_t { input, message };

    std::int64_t at = 0; ///< nanoseconds since the client entered the game
    Kind kind = Kind::input;
    bool vital = false;
    /// For an input: its intended tick minus the tick of the client's newest snapshot.
    std::int32_t lead = 0;
    std::size_t offset = 0; ///< position of its bytes in the script
    std::size_t size = 0;
};

/// The client side of a captured session, without the connection's own data: tokens, sequences,
/// acknowledgements, ticks.
struct ClientScript {
    std::uint32_t session = 0;
    wire::Dialect dialect = wire::Dialect::six;
    std::vector<std::byte> version{}; ///< the whole client_version message; empty if it sent none
    std::vector<std::byte> info{};    ///< the version string in its info message, with the NUL
    std::int32_t client_version = 0x0705; ///< for 0.7: the version in its info message
    std::vector<std::byte> start_info{};  ///< the whole cl_start_info message
    std::vector<ScriptStep> steps{};
    std::vector<std::byte> bytes{};
    /// Messages left out because they contain secrets or are for the remote console.
    std::uint64_t withheld = 0;

    /// The bytes of a step: for an input its size and what the player pressed, otherwise the whole
    /// message.
    [[nodiscard]] std::span<const std::byte> bytes_of(const ScriptStep& step) const {
        return std::span{bytes}.subspan(step.offset, step.size);
    }

    [[nodiscard]] std::int64_t length() const { return steps.empty() ? 0 : steps.back().at; }
};

/// Extracts the scripts of captured clients from inspected traffic. Only messages that their
/// servers accepted are used. A session that used both dialects has a script for each.
class ScriptReader final : public inspect::Observer {
  public:
    struct Options {
        bool secrets = false; ///< includes chat lines with codes and passwords
        /// Chat commands whose arguments are no secret; null for the harmless ones.
        const wire::CommandNames* shown_commands = nullptr;
        /// Limit for all scripts together: six hours of a full server.
        std::size_t max_bytes = std::size_t{1} << 30U;
    };

    explicit ScriptReader(Options options) : options_{options} {}

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHead* head) override;

    /// Returns the scripts that have a step, in order of appearance. The reader is empty
    /// afterwards.
    [[nodiscard]] std::vector<ClientScript> take();

    /// True if there was more than the limit allows.
    [[nodiscard]] bool cut() const { return cut_; }

  private:
    static constexpr std::size_t kMaxScripts = 4096;

    struct Reading {
        ClientScript script;
        std::optional<record::Timestamp> entered{};
        std::optional<snapshot::Tick> newest{}; ///< newest snapshot that the client received
    };

    [[nodiscard]] Reading* find();
    static void on_server(const wire::MessageHead& head, Reading& reading);
    void on_system(const wire::MessageHead& head, std::span<const std::byte> whole,
                   Reading& reading);
    void on_game(const wire::Chunk& chunk, const wire::MessageHead& head, Reading& reading);
    void add(ScriptStep step, std::span<const std::byte> bytes, Reading& reading);
    [[nodiscard]] bool is_secret(const wire::MessageHead& head);

    Options options_;
    record::RecordHead head_;
    std::optional<wire::Dialect> dialect_; ///< dialect of the current packet
    std::map<std::pair<std::uint32_t, wire::Dialect>, Reading> readings_;
    wire::DecodedFields fields_;
    std::size_t bytes_ = 0;
    bool cut_ = false;
};

// Messages that a client creates itself in either dialect, because the captured messages were made
// for another server.

using Bytes = std::vector<std::byte>;

/// Returns the start of a message that both dialects have.
[[nodiscard]] Bytes begin_message(wire::MessageId id, wire::Dialect dialect);

/// Returns the info message: the client's version and the password.
[[nodiscard]] Bytes info_message(const ClientScript& script, std::string_view password);
/// Returns the captured cl_start_info, or a default one without a name.
[[nodiscard]] Bytes start_info_message(const ClientScript& script);

/// Returns an input with nothing pressed: its size and ints.
[[nodiscard]] Bytes nothing_pressed();

[[nodiscard]] Bytes ping_message(wire::Dialect dialect);
[[nodiscard]] Bytes ping_reply_message(wire::Dialect dialect);
[[nodiscard]] bool is_ping(const wire::MessageHead& head);
[[nodiscard]] bool is_ping_reply(const wire::MessageHead& head);

} // namespace tw::replay
