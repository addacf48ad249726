#pragma once

#include "proxy/record/world.h"
#include "proxy/wire/message.h"
#include "snapshot/snapshot.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// A DDNet version as clients announce it: major * 1000 + minor * 10 + patch.
using DdnetVersion = std::int32_t;

/// What program a server is, as far as its own traffic shows: what it says of itself, and messages
/// and objects that only some versions send. Where the two contradict each other, what it sends
/// counts: mods number their versions as they like.
///
/// Sources: protocol sheet, sections 5.3, 7.2 and 11; DDNet CGameContext::OnClientEnter and
///          CServer::CacheServerInfo, which print GAME_VERSION.
class ServerProgram {
  public:
    /// The version of a server info: "0.6.4, 16.4", "0.6, 20.1.1", "0.6.5".
    void on_info(std::string_view version);
    /// A line of chat to everybody. DDNet greets who enters with its version.
    void on_chat(std::string_view line);
    /// A message from the server, one of those with a UUID.
    void on_extended(const wire::MessageSpec& message);

    /// A map change. DDNet sends its capabilities first.
    void on_map_change() { vanilla_ = !ddnet_; }

    /// A verified snapshot.
    void on_snapshot(const snapshot::SnapshotView& items, const record::TypeNames& types);

    /// A new connection: the program may be another, but most likely is not.
    void begin_anew() {
        at_least_ = 0;
        below_ = kUnbounded;
        snapshots_ = 0;
    }

    /// Whether it still has to be asked for what it says of itself.
    [[nodiscard]] bool is_silent() const { return !said_ && !says_vanilla_; }

    /// Whether snapshots may still tell more. Not for ever: a server may never show what differs.
    [[nodiscard]] bool wants_snapshots() const {
        return is_silent() && snapshots_ < kEnoughSnapshots;
    }

    /// It sent what only DDNet sends.
    [[nodiscard]] bool is_ddnet() const { return ddnet_; }

    [[nodiscard]] bool is_vanilla() const { return vanilla_ || (says_vanilla_ && !ddnet_); }

    /// The newest it can be; nothing when that is today's.
    [[nodiscard]] std::optional<DdnetVersion> version() const;

    /// What is known of a message whose number only older versions send.
    enum class Reading : std::uint8_t {
        certain,  ///< it is what the table says
        likely,   ///< the version is unknown, and nothing in the message contradicts the table
        mistaken, ///< it is something else
    };
    /// How to read a message of this server.
    [[nodiscard]] Reading reading(const wire::MessageHead& head) const;

  private:
    static constexpr DdnetVersion kUnbounded = std::numeric_limits<DdnetVersion>::max();
    static constexpr int kEnoughSnapshots = 25; ///< half a second of play; DDNet greets at once

    void since(DdnetVersion version);
    void until(DdnetVersion version);

    std::optional<DdnetVersion> said_;
    DdnetVersion at_least_ = 0;
    DdnetVersion below_ = kUnbounded;
    bool ddnet_ = false;   ///< sends what vanilla does not know
    bool vanilla_ = false; ///< sent a map, and nothing that DDNet sends before
    bool says_vanilla_ = false;
    int snapshots_ = 0; ///< that were looked at
};

} // namespace tw::inspect
