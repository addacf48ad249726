#pragma once

#include "proxy/record/interface.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "snapshot/arena.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::world {

/// One session's snapshot of a tick, with the data needed to interpret it.
struct View {
    std::uint32_t session = 0;
    std::int32_t version = 0; ///< the client's version; 0: vanilla
    snapshot::SnapshotView items{};
    /// The server replaced its client ids by numbers valid only for this client.
    bool translated = false;
    std::optional<std::uint16_t> own{};     ///< client id of the viewer
    std::optional<std::uint16_t> watched{}; ///< client id that the viewer spectates
    bool watches = false;                   ///< the viewer's camera is not at its own tee
    bool scoreboard = false;                ///< the client shows the scoreboard
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< protocol version of the client
    /// The players; null if the items contain them, as in 0.6 and after the translation of a 0.7
    /// view by SevenToSixTranslator.
    const record::Roster* roster = nullptr;
    /// For each item, a bit mask of the ints whose value the view does not contain, as in
    /// record::Sightings; empty if no int is missing.
    std::span<const std::uint32_t> untold{};

    /// Returns whether the view has a client id for every player. Then the id −1 means "no player".
    /// Returns false for 0.7, where this is not certain.
    [[nodiscard]] bool knows_all_players() const {
        return !translated && dialect == snapshot::Dialect::six;
    }
};

/// Bit masks, one for each item of a tick. Bit i is set if the session with index i saw the item.
class SeenMasks {
  public:
    /// Removes all masks. Masks added later have `sessions` bits.
    void begin(std::size_t sessions) {
        words_ = (sessions + kBits - 1) / kBits;
        bits_.clear();
    }

    /// Adds an empty mask. Returns its index.
    std::size_t add_mask() {
        bits_.resize(bits_.size() + words_);
        return size() - 1;
    }

    void mark_seen(std::size_t mask, std::size_t session) {
        bits_[mask * words_ + session / kBits] |= std::uint64_t{1} << (session % kBits);
    }

    /// Sets in `mask` all bits that are set in the mask `other`.
    void add_sessions_of(std::size_t mask, std::size_t other) {
        for (std::size_t i = 0; i < words_; ++i) {
            bits_[mask * words_ + i] |= bits_[other * words_ + i];
        }
    }

    [[nodiscard]] std::size_t size() const { return words_ == 0 ? 0 : bits_.size() / words_; }

    [[nodiscard]] std::size_t words_per_mask() const { return words_; }

    [[nodiscard]] std::span<const std::uint64_t> mask(std::size_t index) const {
        return std::span{bits_}.subspan(index * words_, words_);
    }

  private:
    static constexpr std::size_t kBits = 64;

    std::size_t words_ = 0; ///< number of words in a mask
    std::vector<std::uint64_t> bits_;
};

/// Calls `use(item)` for each item of a type, in ascending order of ids.
template <typename Use>
void each_of_type(const snapshot::SnapshotView& items, std::uint16_t type, const Use& use) {
    for (std::size_t i = items.lower_bound({.type = type, .id = 0});
         i < items.size() && items[i].key.type == type; ++i) {
        use(items[i]);
    }
}

/// Makes a view of a 0.6 snapshot. The viewer's client id is read from the items.
[[nodiscard]] View read_view(std::uint32_t session, std::int32_t version,
                             const snapshot::SnapshotView& items);

/// Makes a view of a 0.7 snapshot. `roster`: the players, whom 0.7 sends in messages; null if
/// unknown.
[[nodiscard]] View read_seven_view(std::uint32_t session, std::int32_t version,
                                   const snapshot::SnapshotView& items,
                                   const record::Roster* roster);

/// Returns whether `left` has more information than `right`. Decided by the first of these criteria
/// that differs: 0.6 before 0.7, ids for all players, newer version, lower session number. This is
/// a total order, because a session has only one view per tick.
[[nodiscard]] bool has_more_information(const View& left, const View& right);

/// Returns the class of a client version. Servers build some objects differently for clients before
/// certain versions, so only views of the same class must agree.
[[nodiscard]] int version_class(std::int32_t version);

/// A session's event that affects the merged snapshots of its server. Its pointers are valid only
/// during WorldInputSink::on_input().
struct WorldInput {
    enum class Kind : std::uint8_t {
        open, ///< the session begins, or its client reconnects; `server` is set
        map,  ///< the session's server announced a map; `map` is set
        /// The session received a verified snapshot. These members are set: `tick`, `items`,
        /// `world`, `dialect`, `roster`, `client_version`.
        snapshot,
        message,     ///< the session received a message to all players, perhaps; `payload` is set
        close,       ///< the session ended
        time_passed, ///< no session had an event until `time`
    };
    Kind kind = Kind::time_passed;
    record::Timestamp time = 0;
    std::uint32_t session = 0;
    std::string_view server{};
    /// The server's configured name, valid until the program ends; empty if none.
    std::string_view server_name{};
    bool resumed = false; ///< only for `open`: another process inspected the session before
    const record::MapRecord* map = nullptr;
    snapshot::Tick tick = 0;
    snapshot::SnapshotView items{};
    /// The map's tiles, to find the tile at a position; null while the map is unknown.
    const record::TileMap* tile_map = nullptr;
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const record::Roster* roster = nullptr; ///< the players; only for 0.7
    std::int32_t client_version = 0;        ///< DDNet's version number; 0: vanilla or unknown
    std::span<const std::byte> payload{};   ///< the whole message, see record::MessageRecord
};

/// Receives sessions' events. Implementations must copy the data that they keep.
class WorldInputSink : public record::Interface {
  public:
    virtual void on_input(const WorldInput& input) = 0;
};

/// The views (sessions' snapshots) of one tick for which more views may arrive.
class OpenWorld {
  public:
    /// Removes all views and starts to collect those of a new tick. Reuses the memory.
    void begin(snapshot::Tick tick, record::Timestamp time);

    /// Adds a copy of the session's snapshot. `roster`: a copy of `input.roster`. Returns false if
    /// the session already has a view of this tick.
    [[nodiscard]] bool add_view(const WorldInput& input,
                                std::shared_ptr<const record::Roster> roster);

    [[nodiscard]] snapshot::Tick tick() const { return tick_; }

    /// Returns the arrival time of the view that arrived first.
    [[nodiscard]] record::Timestamp time() const { return time_; }

    [[nodiscard]] std::size_t view_count() const { return stored_.size(); }

    [[nodiscard]] bool has_view_of(std::uint32_t session) const;

    /// Returns an upper bound of the memory use in bytes. A roster that several ticks share counts
    /// for every tick.
    [[nodiscard]] std::size_t memory_bytes() const {
        return ints_.size() * sizeof(std::int32_t) + stored_.size() * sizeof(StoredView) +
               rosters_ * kRosterBytes;
    }

    /// Returns the memory allocated for the views' ints, in bytes.
    [[nodiscard]] std::size_t allocated_bytes() const {
        return ints_.capacity() * sizeof(std::int32_t);
    }

    /// Replaces the content of `views` by this tick's views, sorted by has_more_information(). They
    /// refer to this object's memory and are valid until it is changed.
    void list_views(std::vector<View>& views) const;

  private:
    struct StoredView {
        View view{}; ///< the view without its items, which list_views() sets
        std::shared_ptr<const record::Roster> roster{};
        std::size_t begin = 0; ///< index of the view's first int in ints_
        std::size_t num_items = 0;
        std::size_t num_ints = 0;
    };

    /// The memory of the largest possible roster, in bytes.
    static constexpr std::size_t kRosterBytes =
        sizeof(record::Roster) + record::Roster::kMaxClients * sizeof(record::Roster::Entry);

    snapshot::Tick tick_ = 0;
    record::Timestamp time_ = 0;
    std::size_t rosters_ = 0; ///< number of views with a roster
    std::vector<StoredView> stored_;
    /// The ints of all views one after another, in the layout of SnapshotView.
    snapshot::RawVector<std::int32_t> ints_;
};

/// Reuses the OpenWorld objects of finished ticks for new ticks. All servers share one pool. The
/// memory of its unused objects is limited.
class OpenWorldPool {
  public:
    [[nodiscard]] std::unique_ptr<OpenWorld> take_empty(snapshot::Tick tick,
                                                        record::Timestamp time);
    void recycle(std::unique_ptr<OpenWorld> world);

  private:
    static constexpr std::size_t kMaxSpare = 8;
    /// Limit of the unused objects' memory in bytes: 64 views of 32 KiB each.
    static constexpr std::size_t kMaxSpareRoom = std::size_t{2} << 20U;

    std::vector<std::unique_ptr<OpenWorld>> spare_;
};

} // namespace tw::world
