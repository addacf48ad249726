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

/// A message or input that a captured client sent in the game.
struct ScriptStep {
    enum class Kind : std::uint8_t { input, message };

    std::int64_t at = 0; ///< time in nanoseconds since the client entered the game
    Kind kind = Kind::input;
    bool vital = false;
    /// For an input: its intended tick minus the tick of the client's newest snapshot.
    std::int32_t lead = 0;
    std::size_t offset = 0; ///< position of the step's bytes in the script
    std::size_t size = 0;
};

/// The messages of a captured client, without data that belongs to the connection: tokens,
/// sequences, acknowledgements, ticks.
struct ClientScript {
    std::uint32_t session = 0;
    wire::Dialect dialect = wire::Dialect::six;
    /// The whole client_version message; empty if the client sent none.
    std::vector<std::byte> version{};
    /// The version string in the client's info message, with the NUL.
    std::vector<std::byte> info{};
    /// For 0.7: the version number in the client's info message.
    std::int32_t client_version = 0x0705;
    std::vector<std::byte> start_info{}; ///< the whole cl_start_info message
    std::vector<ScriptStep> steps{};
    std::vector<std::byte> bytes{};
    /// Number of messages left out because they contain secrets or are for the remote console.
    std::uint64_t withheld = 0;

    /// Returns the bytes of a step. For an input, they are its size and the ints of what the player
    /// pressed; otherwise the whole message.
    [[nodiscard]] std::span<const std::byte> bytes_of(const ScriptStep& step) const {
        return std::span{bytes}.subspan(step.offset, step.size);
    }

    [[nodiscard]] std::int64_t duration() const { return steps.empty() ? 0 : steps.back().at; }
};

/// Extracts the scripts of captured clients from inspected traffic. Uses only messages that the
/// servers accepted. A session that used both dialects gets one script per dialect.
class ScriptReader final : public inspect::Observer {
  public:
    struct Options {
        bool secrets = false; ///< include chat lines with codes and passwords
        /// The chat commands whose arguments are not secret; null for the default list.
        const wire::CommandNames* shown_commands = nullptr;
        /// The size limit of all scripts together in bytes: six hours of a full server.
        std::size_t max_bytes = std::size_t{1} << 30U;
    };

    explicit ScriptReader(Options options) : options_{options} {}

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHeader* head) override;

    /// Returns the scripts with at least one step, in the order of their first datagrams. Removes
    /// all scripts from the reader.
    [[nodiscard]] std::vector<ClientScript> take_scripts();

    /// Returns true if the scripts were truncated at Options::max_bytes or kMaxScripts.
    [[nodiscard]] bool is_truncated() const { return is_truncated_; }

  private:
    static constexpr std::size_t kMaxScripts = 4096;

    struct ScriptInProgress {
        ClientScript script;
        std::optional<record::Timestamp> entered{};
        /// Tick of the newest snapshot that the client received.
        std::optional<snapshot::Tick> newest{};
    };

    [[nodiscard]] ScriptInProgress* find_script();
    static void on_server_message(const wire::MessageHeader& head, ScriptInProgress& reading);
    void on_system_message(const wire::MessageHeader& head, std::span<const std::byte> whole,
                           ScriptInProgress& reading);
    void on_game_message(const wire::Chunk& chunk, const wire::MessageHeader& head,
                         ScriptInProgress& reading);
    void add_step(ScriptStep step, std::span<const std::byte> bytes, ScriptInProgress& reading);
    [[nodiscard]] bool is_secret(const wire::MessageHeader& head);

    Options options_;
    record::RecordHeader head_;
    std::optional<wire::Dialect> dialect_; ///< dialect of the current packet
    std::map<std::pair<std::uint32_t, wire::Dialect>, ScriptInProgress> readings_;
    wire::DecodedFields fields_;
    std::size_t bytes_ = 0;
    bool is_truncated_ = false;
};

// Messages that a replaying client sends in addition to the steps of its script.

using Bytes = std::vector<std::byte>;

/// Returns the start of a message that exists in both dialects.
[[nodiscard]] Bytes begin_message(std::string_view name, wire::Dialect dialect);

/// Returns the client's info message, which contains its version and the password.
[[nodiscard]] Bytes info_message(const ClientScript& script, std::string_view password);
/// Returns the captured cl_start_info message, or a default message without a name.
[[nodiscard]] Bytes start_info_message(const ClientScript& script);

/// Returns an input without a pressed key: size and ints.
[[nodiscard]] Bytes idle_input_message();

} // namespace tw::replay
