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

using Bytes = std::vector<std::byte>;

/// A message or input that a captured client sent in the game.
struct ScriptStep {
    enum class Kind : std::uint8_t { input, message };

    std::int64_t time = 0; ///< when it was sent, in nanoseconds since the client entered the game
    Kind kind = Kind::input;
    bool vital = false;
    /// For an input: its intended tick minus the tick of the client's newest snapshot.
    std::int32_t lead_ticks = 0;
    std::size_t offset = 0; ///< position of the step's bytes in the script
    std::size_t size = 0;
};

/// The messages of a captured client, without data that belongs to the connection: tokens,
/// sequences, acknowledgements, ticks.
struct ClientScript {
    std::uint32_t session = 0;
    wire::Dialect dialect = wire::Dialect::six;
    Bytes version_message{}; ///< the client_version message; empty if the client sent none
    Bytes info_version{};    ///< the version text in the client's info message, with the NUL
    /// For 0.7: the version number in the client's info message.
    std::int32_t info_version_number = 0x0705;
    Bytes start_info_message{}; ///< the cl_start_info message; empty if the client sent none
    std::vector<ScriptStep> steps{};
    Bytes bytes{}; ///< the bytes of all steps
    /// Number of messages left out because they contain secrets or are for the remote console.
    std::uint64_t num_withheld_messages = 0;

    /// Returns the message of a step. For an input, leaves out the message number and the two ticks
    /// at the start of the message.
    [[nodiscard]] std::span<const std::byte> bytes_of(const ScriptStep& step) const {
        return std::span{bytes}.subspan(step.offset, step.size);
    }

    [[nodiscard]] std::int64_t duration() const { return steps.empty() ? 0 : steps.back().time; }
};

/// Extracts the scripts of captured clients from inspected traffic. Uses only messages that the
/// servers accepted. A session that used both dialects gets one script per dialect.
class ClientScriptExtractor final : public inspect::Observer {
  public:
    struct Options {
        bool includes_secrets = false; ///< include chat lines with codes and passwords
        /// The chat commands whose arguments are not secret; null for the default list.
        const wire::CommandNames* shown_commands = nullptr;
        /// The maximum size of all scripts in bytes: enough for six hours of a full server.
        std::size_t max_bytes = std::size_t{1} << 30U;
    };

    explicit ClientScriptExtractor(Options options) : options_{options} {}

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHeader* head) override;

    /// Returns the scripts with at least one step, in the order of their first datagrams. Removes
    /// all scripts from the extractor.
    [[nodiscard]] std::vector<ClientScript> take_scripts();

    /// True if steps or scripts were left out because of Options::max_bytes or kMaxScripts.
    [[nodiscard]] bool is_truncated() const { return is_truncated_; }

  private:
    static constexpr std::size_t kMaxScripts = 4096;

    struct UnfinishedScript {
        ClientScript script;
        std::optional<record::Timestamp> game_entry_time{};
        std::optional<snapshot::Tick> newest_tick{}; ///< tick of the newest snapshot
    };

    [[nodiscard]] UnfinishedScript* find_or_add_script();
    static void on_server_message(const wire::MessageHeader& head, UnfinishedScript& unfinished);
    void on_system_message(const wire::MessageHeader& head, std::span<const std::byte> message,
                           UnfinishedScript& unfinished);
    void on_game_message(const wire::Chunk& chunk, const wire::MessageHeader& head,
                         UnfinishedScript& unfinished);
    void add_step(ScriptStep step, std::span<const std::byte> bytes, UnfinishedScript& unfinished);
    [[nodiscard]] bool is_secret(const wire::MessageHeader& head);

    Options options_;
    record::RecordHeader head_;            ///< session, time and direction of the current datagram
    std::optional<wire::Dialect> dialect_; ///< dialect of the current packet
    std::map<std::pair<std::uint32_t, wire::Dialect>, UnfinishedScript> unfinished_;
    wire::DecodedFields fields_;
    std::size_t bytes_ = 0; ///< size of all steps
    bool is_truncated_ = false;
};

// Messages that a replaying client sends in addition to the steps of its script.

/// Returns the encoded id of a message that exists in both dialects.
[[nodiscard]] Bytes encode_message_id(std::string_view name, wire::Dialect dialect);

/// Returns the client's info message, which contains its version and the password.
[[nodiscard]] Bytes make_info_message(const ClientScript& script, std::string_view password);
/// Returns the captured cl_start_info message, or a default message without a name.
[[nodiscard]] Bytes make_start_info_message(const ClientScript& script);

/// Returns the bytes of an input without a pressed key (see ClientScript::bytes_of()).
[[nodiscard]] Bytes make_idle_input();

} // namespace tw::replay
