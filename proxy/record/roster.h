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

/// Number of ints at the start of a client_info that hold the player's name.
inline constexpr std::size_t kPlayerNameInts = 4;

/// Text packed into ints, as servers send it.
struct PackedText {
    std::span<const std::int32_t> ints; ///< at most snapshot::kMaxStringInts
};

/// The player's name in a client_info. If the item is too short, the part of the name it contains.
[[nodiscard]] constexpr PackedText name_in(std::span<const std::int32_t> client_info) {
    return {client_info.first(client_info.size() < kPlayerNameInts ? client_info.size()
                                                                   : kPlayerNameInts)};
}

/// The name of the player with this client id; nullopt if the snapshot does not contain it.
[[nodiscard]] inline std::optional<PackedText> player_name(const snapshot::SnapshotView& items,
                                                           std::uint16_t client) {
    const auto info = items.find({snapshot::kClientInfoType, client});
    return info ? std::optional{name_in(items[*info].data)} : std::nullopt;
}

/// The players of a 0.7 server, which announces each player once, in messages. In 0.6 each
/// snapshot contains the players.
class Roster {
  public:
    static constexpr std::size_t kMaxClients = 64; ///< client ids in 0.7
    /// Limit of client ids in a world: 128 that a server may use, and as many that the merge of
    /// views makes up.
    static constexpr std::size_t kMaxPlayers = 256;

    struct Player {
        std::int32_t client_id = 0;
        bool own = false; ///< this player is the receiving client itself
        std::int32_t team = 0;
        std::string_view name; ///< the bytes as the server sent them
    };

    using Name = std::array<std::int32_t, kPlayerNameInts>;

    /// What is known of one player.
    struct Entry {
        Name name{}; ///< packed as in a 0.6 snapshot
        std::int32_t team = 0;

        friend bool operator==(const Entry&, const Entry&) = default;
    };

    /// A player joined or was announced again. An invalid client id is ignored, as clients do.
    void join(const Player& player);
    void change_team(std::int32_t client_id, std::int32_t team);
    void leave(std::int32_t client_id);

    /// The map changed: the server announces all players again.
    void clear() { *this = {}; }

    /// Sets a player without a server's message, for example from a checkpoint. An invalid client
    /// id is ignored.
    void put(std::uint16_t client, const Entry& entry);

    void put_own(std::uint16_t client) { own_ = client; }

    /// The player with this client id; null if unknown.
    [[nodiscard]] const Entry* find(std::uint16_t client) const;
    [[nodiscard]] std::optional<PackedText> name(std::uint16_t client) const;

    /// The client id of the receiving client itself; nullopt if unknown.
    [[nodiscard]] std::optional<std::uint16_t> own() const { return own_; }

    /// Calls `use(client, entry)` for each known player, by client id.
    template <typename Use>
    void each(const Use& use) const {
        for (std::size_t i = 0; i < players_.size(); ++i) {
            if (players_[i]) {
                use(static_cast<std::uint16_t>(i), *players_[i]);
            }
        }
    }

    friend bool operator==(const Roster&, const Roster&) = default;

  private:
    std::vector<std::optional<Entry>> players_; ///< by client id, up to the highest one seen
    std::optional<std::uint16_t> own_;
};

// Functions that depend on the dialect of a snapshot.

[[nodiscard]] inline snapshot::Dialect dialect_of(const SnapshotRecord& record) {
    return record.types == nullptr ? snapshot::Dialect::six : record.types->dialect();
}

/// The name of the player with this client id: in 0.6 from the snapshot, in 0.7 from earlier
/// messages. nullopt if unknown.
[[nodiscard]] inline std::optional<PackedText> player_name(const SnapshotRecord& record,
                                                           std::uint16_t client) {
    return record.roster != nullptr ? record.roster->name(client)
                                    : player_name(record.items, client);
}

/// The tee of the player who receives a snapshot.
struct LocalPlayer {
    std::string name;  ///< bytes as the server sent them; "#3" if the name is unknown
    std::string place; ///< "(50,32) air"; "x=1600 y=1024" if the map is missing; "not in the game"
    std::optional<std::int32_t> score{}; ///< as the server sent it; nullopt if it did not
};

/// The receiving player's tee; nullopt if the snapshot does not name the receiver or was not
/// rebuilt.
[[nodiscard]] std::optional<LocalPlayer> local_player(const record::SnapshotRecord& record);

} // namespace tw::record
