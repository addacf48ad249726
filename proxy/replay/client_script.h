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

/// What a captured client sent while it was in the game, one message.
struct ScriptStep {
    enum class Kind : std::uint8_t { input, message };

    std::int64_t at = 0; ///< nanoseconds since it entered the game
    Kind kind = Kind::input;
    bool vital = false;
    /// Of an input: so many ticks before the newest snapshot its client had.
    std::int32_t lead = 0;
    std::size_t offset = 0; ///< of its bytes in the script
    std::size_t size = 0;
};

/// The client side of one captured session, without what belongs to its connection: tokens,
/// sequences, acknowledgements, ticks.
struct ClientScript {
    std::uint32_t session = 0;
    wire::Dialect dialect = wire::Dialect::six;
    std::vector<std::byte> version{};     ///< its client_version, whole; empty: it sent none
    std::vector<std::byte> info{};        ///< the version string of its info, with the NUL
    std::int32_t client_version = 0x0705; ///< of 0.7: what its info says
    std::vector<std::byte> start_info{};  ///< its cl_start_info, whole
    std::vector<ScriptStep> steps{};
    std::vector<std::byte> bytes{};
    std::uint64_t withheld = 0; ///< messages that hold secrets, or are for the remote console

    /// Of an input: its size and what the player pressed; else the whole message.
    [[nodiscard]] std::span<const std::byte> bytes_of(const ScriptStep& step) const {
        return std::span{bytes}.subspan(step.offset, step.size);
    }

    [[nodiscard]] std::int64_t length() const { return steps.empty() ? 0 : steps.back().at; }
};

/// Reads the scripts of captured clients, as an inspector sees them. Only what their servers
/// accepted counts. A session that spoke both has a script of each.
class ScriptReader final : public inspect::Observer {
  public:
    struct Options {
        bool secrets = false; ///< chat lines with codes and passwords, too
        /// Chat commands whose arguments are no secret; null: those that are harmless everywhere.
        const wire::CommandNames* shown_commands = nullptr;
        /// Of all scripts together: six hours of a full server.
        std::size_t max_bytes = std::size_t{1} << 30U;
    };

    explicit ScriptReader(Options options) : options_{options} {}

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHead* head) override;

    /// Those that have a step, in order of appearance. The reader is empty then.
    [[nodiscard]] std::vector<ClientScript> take();

    /// There was more than there is room for.
    [[nodiscard]] bool cut() const { return cut_; }

  private:
    static constexpr std::size_t kMaxScripts = 4096;

    struct Reading {
        ClientScript script;
        std::optional<record::Timestamp> entered{};
        std::optional<snapshot::Tick> newest{}; ///< of the snapshots it was sent
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
    std::optional<wire::Dialect> dialect_; ///< of the packet at hand
    std::map<std::pair<std::uint32_t, wire::Dialect>, Reading> readings_;
    wire::DecodedFields fields_;
    std::size_t bytes_ = 0;
    bool cut_ = false;
};

// What a client says by itself, in either dialect: what is captured of it is for another server.

using Bytes = std::vector<std::byte>;

/// The beginning of a message that both dialects have.
[[nodiscard]] Bytes begin_message(wire::MessageId id, wire::Dialect dialect);

/// Who it is, and the password.
[[nodiscard]] Bytes info_message(const ClientScript& script, std::string_view password);
/// The captured one, or that of somebody without a name of their own.
[[nodiscard]] Bytes start_info_message(const ClientScript& script);

/// The ints of an input in which nothing is pressed, with their size.
[[nodiscard]] Bytes nothing_pressed();

[[nodiscard]] Bytes ping_message(wire::Dialect dialect);
[[nodiscard]] Bytes ping_reply_message(wire::Dialect dialect);
[[nodiscard]] bool is_ping(const wire::MessageHead& head);
[[nodiscard]] bool is_ping_reply(const wire::MessageHead& head);

} // namespace tw::replay
