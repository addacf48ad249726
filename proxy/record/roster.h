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

/// Ints at the front of a client_info that hold the player's name.
inline constexpr std::size_t kPlayerNameInts = 4;

/// Text as servers pack it in ints.
struct PackedText {
    std::span<const std::int32_t> ints; ///< at most snapshot::kMaxStringInts
};

/// The name in a client_info; of a shorter one what is there.
[[nodiscard]] constexpr PackedText name_in(std::span<const std::int32_t> client_info) {
    return {client_info.first(client_info.size() < kPlayerNameInts ? client_info.size()
                                                                   : kPlayerNameInts)};
}

/// The name of the player with this client id; nothing when the snapshot does not tell it.
[[nodiscard]] inline std::optional<PackedText> player_name(const snapshot::SnapshotView& items,
                                                           std::uint16_t client) {
    const auto info = items.find({snapshot::kClientInfoType, client});
    return info ? std::optional{name_in(items[*info].data)} : std::nullopt;
}

/// Who plays, as servers of 0.7 tell it: once, by messages (0.7 sheet, section 6.2). 0.6 says the
/// same in every snapshot.
class Roster {
  public:
    static constexpr std::size_t kMaxClients = 64; ///< that 0.7 can name
    /// Ids that a world may have: of the largest server, and as many again for who it cannot tell.
    static constexpr std::size_t kMaxPlayers = 256;

    struct Player {
        std::int32_t client_id = 0;
        bool own = false; ///< the receiver's
        std::int32_t team = 0;
        std::string_view name; ///< bytes as they stand
    };

    using Name = std::array<std::int32_t, kPlayerNameInts>;

    /// What is known of one.
    struct Entry {
        Name name{}; ///< packed as snapshots of 0.6 pack it
        std::int32_t team = 0;

        friend bool operator==(const Entry&, const Entry&) = default;
    };

    /// Somebody joined, or is told of again. A client id out of range is ignored, as by clients.
    void join(const Player& player);
    void change_team(std::int32_t client_id, std::int32_t team);
    void leave(std::int32_t client_id);

    /// Another map: all of it is told again.
    void clear() { *this = {}; }

    /// Puts somebody there who is known from elsewhere. What is out of range is ignored.
    void put(std::uint16_t client, const Entry& entry);

    void put_own(std::uint16_t client) { own_ = client; }

    /// Null: it was not told.
    [[nodiscard]] const Entry* find(std::uint16_t client) const;
    [[nodiscard]] std::optional<PackedText> name(std::uint16_t client) const;

    /// The receiver's own client.
    [[nodiscard]] std::optional<std::uint16_t> own() const { return own_; }

    /// `use(client, entry)` for each that is known, by client id.
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
    std::vector<std::optional<Entry>> players_; ///< by client id, up to the highest there was
    std::optional<std::uint16_t> own_;
};

// What depends on the dialect a snapshot is of.

[[nodiscard]] inline snapshot::Dialect dialect_of(const SnapshotRecord& record) {
    return record.types == nullptr ? snapshot::Dialect::six : record.types->dialect();
}

/// The name of the player with this client id: from the snapshot in 0.6, from the messages before
/// it in 0.7. Nothing when neither tells it.
[[nodiscard]] inline std::optional<PackedText> player_name(const SnapshotRecord& record,
                                                           std::uint16_t client) {
    return record.roster != nullptr ? record.roster->name(client)
                                    : player_name(record.items, client);
}

/// The tee of the player a snapshot was made for.
struct LocalPlayer {
    std::string name;  ///< bytes as the server sent them; "#3" when it told no name
    std::string place; ///< "(50,32) air", "x=1600 y=1024" without a map, "not in the game"
};

/// Nothing when the snapshot does not say who receives it, or was not rebuilt.
[[nodiscard]] std::optional<LocalPlayer> local_player(const record::SnapshotRecord& record);

} // namespace tw::record
