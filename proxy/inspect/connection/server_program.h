#pragma once

#include "proxy/record/records.h"
#include "proxy/wire/message.h"
#include "snapshot/snapshot.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// A DDNet version as clients announce it: major * 1000 + minor * 10 + patch.
using DdnetVersion = std::int32_t;

/// Finds out which program and version a server runs: from the version that the server announces,
/// and from messages and objects that only some versions send. Such messages and objects outweigh
/// the announced version, because mods choose their version numbers freely.
class ServerProgram {
  public:
    /// Called when the server sent a server info. `version`: the version text in it, for example
    /// "0.6.4, 16.4", "0.6, 20.1.1" or "0.6.5".
    void on_server_info(std::string_view version);
    /// Called when the server sent a chat line that no player wrote. DDNet greets each new player
    /// with a line that contains the server's version.
    void on_server_chat(std::string_view line);
    void on_uuid_message(const wire::MessageSpec& message);

    /// Called when the server sent a map change. DDNet sends its capabilities before the map
    /// change. A server that has not sent a DDNet message by then counts as vanilla.
    void on_map_change() { lacks_ddnet_messages_ = !has_ddnet_features_; }

    /// Searches a verified snapshot for objects that only some versions send.
    void on_snapshot(const snapshot::SnapshotView& items, const record::ItemTypes& types);

    /// Forgets which messages and objects were seen, because the server may now run another
    /// version. Called when a new connection begins.
    void forget_evidence() {
        min_version_ = 0;
        version_limit_ = kNoVersionLimit;
        num_examined_snapshots_ = 0;
    }

    [[nodiscard]] bool is_version_unannounced() const {
        return !announced_version_ && !announces_vanilla_;
    }

    /// Whether the next snapshot should be passed to on_snapshot(): the server has not announced
    /// its version, and fewer than kMaxExaminedSnapshots were examined.
    [[nodiscard]] bool wants_snapshot() const {
        return is_version_unannounced() && num_examined_snapshots_ < kMaxExaminedSnapshots;
    }

    /// Whether the server sent a message or object that only DDNet sends.
    [[nodiscard]] bool is_ddnet() const { return has_ddnet_features_; }

    [[nodiscard]] bool is_vanilla() const {
        return lacks_ddnet_messages_ || (announces_vanilla_ && !has_ddnet_features_);
    }

    /// Returns the announced version if messages and objects do not contradict it, otherwise the
    /// newest version that sends these messages and objects; nullopt if no upper limit is known.
    [[nodiscard]] std::optional<DdnetVersion> version() const;

    /// Whether a message id has its meaning in the message table. Some server versions use some ids
    /// for other messages.
    enum class IdInterpretation : std::uint8_t {
        certain,  ///< the id has the meaning in the table
        likely,   ///< the version is unknown, but the body fits the message in the table
        mistaken, ///< this server uses the id for another message, which is unknown
    };
    /// Returns how to interpret the id of a message of this server.
    [[nodiscard]] IdInterpretation interpret_message_id(const wire::MessageHeader& head) const;

  private:
    static constexpr DdnetVersion kNoVersionLimit = std::numeric_limits<DdnetVersion>::max();
    /// The most snapshots that are examined (a second of play). Some servers never send anything
    /// that shows their version.
    static constexpr int kMaxExaminedSnapshots = 25;

    void rule_out_versions_before(DdnetVersion version);
    void rule_out_versions_since(DdnetVersion version);

    std::optional<DdnetVersion> announced_version_;
    DdnetVersion min_version_ = 0;                 ///< the server has this version or a newer one
    DdnetVersion version_limit_ = kNoVersionLimit; ///< the server's version is older than this one
    /// The server sent a message or object that vanilla does not have.
    bool has_ddnet_features_ = false;
    /// The server sent a map change without DDNet's messages before it.
    bool lacks_ddnet_messages_ = false;
    bool announces_vanilla_ = false; ///< the announced version is that of a vanilla server
    int num_examined_snapshots_ = 0;
};

} // namespace tw::inspect
