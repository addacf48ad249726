#pragma once

#include "proxy/record/records.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::record {

/// The number of ints that hold the player's name. They are the first ints of a client_info item.
inline constexpr std::size_t kPlayerNameInts = 4;

/// A text packed into ints, as servers send it.
struct PackedText {
    std::span<const std::int32_t> ints; ///< at most snapshot::kMaxStringInts
};

/// Returns the player's name in a client_info item. If the item is too short, returns the part of
/// the name that it contains.
[[nodiscard]] constexpr PackedText player_name_in(std::span<const std::int32_t> client_info) {
    return {client_info.first(client_info.size() < kPlayerNameInts ? client_info.size()
                                                                   : kPlayerNameInts)};
}

/// Returns the name of the player with the given client id; nullopt if the snapshot does not
/// contain the name.
[[nodiscard]] inline std::optional<PackedText> player_name(const snapshot::SnapshotView& items,
                                                           std::uint16_t client) {
    const auto info = items.find({snapshot::kClientInfoType, client});
    return info ? std::optional{player_name_in(items[*info].data)} : std::nullopt;
}

/// Returns the client id of the player who received a 0.6 snapshot; nullopt if the snapshot does
/// not contain this player.
[[nodiscard]] std::optional<std::uint16_t> find_own_client(const snapshot::SnapshotView& items);

/// The players on a 0.7 server. A 0.7 server announces each player in one message. (In 0.6, every
/// snapshot contains the players.)
class Roster {
  public:
    static constexpr std::size_t kMaxClients = 64; ///< number of client ids in 0.7
    /// The number of client ids in a world: 128 that a server may use, and 128 that twscope may
    /// assign when it merges snapshots of several sessions.
    static constexpr std::size_t kMaxPlayers = 256;

    struct Player {
        std::int32_t client_id = 0;
        bool is_own = false; ///< the player is the receiving client itself
        std::int32_t team = 0;
        std::string_view name; ///< the bytes that the server sent
    };

    using Name = std::array<std::int32_t, kPlayerNameInts>;

    struct KnownPlayer {
        Name name{}; ///< packed as in a 0.6 snapshot
        std::int32_t team = 0;

        friend bool operator==(const KnownPlayer&, const KnownPlayer&) = default;
    };

    /// Adds or replaces a player whom the server announced. Ignores an invalid client id, as
    /// clients do.
    void add_player(const Player& player);
    void change_team(std::int32_t client_id, std::int32_t team);
    void remove_player(std::int32_t client_id);

    /// Removes all players, for example at a map change, after which the server announces them
    /// again.
    void clear() { *this = {}; }

    /// Sets a player who was not announced by a message, for example one read from a checkpoint.
    /// Ignores an invalid client id.
    void set_player(std::uint16_t client, const KnownPlayer& entry);

    void set_own_id(std::uint16_t client) { own_id_ = client; }

    /// Returns the player with the given client id; null if the player is unknown.
    [[nodiscard]] const KnownPlayer* find(std::uint16_t client) const;
    [[nodiscard]] std::optional<PackedText> name(std::uint16_t client) const;

    /// Returns the client id of the client that receives the messages; nullopt if unknown.
    [[nodiscard]] std::optional<std::uint16_t> own_id() const { return own_id_; }

    /// Calls `visit(client, entry)` for each known player, in ascending order of client ids.
    template <typename Visit>
    void for_each_player(const Visit& visit) const {
        for (std::size_t i = 0; i < players_.size(); ++i) {
            if (players_[i]) {
                visit(static_cast<std::uint16_t>(i), *players_[i]);
            }
        }
    }

    friend bool operator==(const Roster&, const Roster&) = default;

  private:
    std::vector<std::optional<KnownPlayer>> players_; ///< index: client id
    std::optional<std::uint16_t> own_id_;
};

// Functions whose result depends on the dialect of a snapshot.

[[nodiscard]] inline snapshot::Dialect dialect_of(const SnapshotRecord& record) {
    return record.types == nullptr ? snapshot::Dialect::six : record.types->dialect();
}

/// Returns the name of the player with the given client id; nullopt if the name is unknown. In 0.6,
/// the snapshot contains the name; in 0.7, an earlier message contained the name.
[[nodiscard]] inline std::optional<PackedText> player_name(const SnapshotRecord& record,
                                                           std::uint16_t client) {
    return record.roster != nullptr ? record.roster->name(client)
                                    : player_name(record.items, client);
}

/// The player who receives a snapshot.
struct LocalPlayer {
    std::string name; ///< the bytes that the server sent; "client 3" if it is unknown
    /// The tile of the player's tee, such as "(50,32) air"; "x=1600 y=1024" if the map is missing;
    /// "not in the game" if the player has no tee.
    std::string place;
    std::optional<std::int32_t> score{}; ///< as the server sent it; nullopt if the server sent none
    /// True if the score is the player's best time in milliseconds (-1: no time). Servers send such
    /// scores to 0.7 clients in races.
    bool is_score_time = false;
};

/// Returns the player who receives the snapshot; nullopt if this player is unknown or if the
/// snapshot could not be rebuilt.
[[nodiscard]] std::optional<LocalPlayer> local_player(const record::SnapshotRecord& record);

} // namespace tw::record
