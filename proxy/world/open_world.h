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

/// One session's snapshot of a tick with its context.
struct View {
    std::uint32_t session = 0;
    std::int32_t version = 0; ///< the client's version; 0: vanilla
    snapshot::SnapshotView items{};
    bool translated = false; ///< the server replaced its client ids by the view's own numbers
    std::optional<std::uint16_t> own{};     ///< client id of the viewer
    std::optional<std::uint16_t> watched{}; ///< client id that the viewer spectates
    bool watches = false;                   ///< the viewer's camera is not at its own tee
    bool scoreboard = false;                ///< the client shows the scoreboard
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< the client's protocol
    /// The players; null if the items contain them, as in 0.6 and after SevenAsSix has translated a
    /// 0.7 view.
    const record::Roster* roster = nullptr;
    /// For each item, a bit mask of the ints whose value the view does not contain, as in
    /// record::SeenBy; empty if no int is missing.
    std::span<const std::uint32_t> untold{};

    /// Returns whether the view certainly has a client id for each player, so that the id −1 means
    /// "no player". Never certain for 0.7.
    [[nodiscard]] bool knows_all() const {
        return !translated && dialect == snapshot::Dialect::six;
    }
};

/// Bit masks, one for each item: bit i is set if the tick's session number i saw the item.
class SeenMasks {
  public:
    /// Removes all masks. Each mask added later has this many bits.
    void begin(std::size_t sessions) {
        words_ = (sessions + kBits - 1) / kBits;
        bits_.clear();
    }

    /// Adds an empty mask. Returns its index.
    std::size_t add() {
        bits_.resize(bits_.size() + words_);
        return size() - 1;
    }

    void set(std::size_t mask, std::size_t session) {
        bits_[mask * words_ + session / kBits] |= std::uint64_t{1} << (session % kBits);
    }

    /// Adds the sessions of the mask `other` to `mask`.
    void join(std::size_t mask, std::size_t other) {
        for (std::size_t i = 0; i < words_; ++i) {
            bits_[mask * words_ + i] |= bits_[other * words_ + i];
        }
    }

    [[nodiscard]] std::size_t size() const { return words_ == 0 ? 0 : bits_.size() / words_; }

    [[nodiscard]] std::size_t words() const { return words_; }

    [[nodiscard]] std::span<const std::uint64_t> of(std::size_t mask) const {
        return std::span{bits_}.subspan(mask * words_, words_);
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

/// Makes a view of a snapshot. The items say which client the snapshot was made for. Client ids in
/// the view are those of the snapshot.
[[nodiscard]] View read_view(std::uint32_t session, std::int32_t version,
                             const snapshot::SnapshotView& items);

/// Like read_view(), for 0.7. `roster`: the players, whom 0.7 sends in messages; null if unknown.
[[nodiscard]] View read_seven_view(std::uint32_t session, std::int32_t version,
                                   const snapshot::SnapshotView& items,
                                   const record::Roster* roster);

/// Returns whether `left` has more information than `right`, by the first of these that differs: 0.6
/// before 0.7, ids for all players, newer version, lower session number. This is a total order,
/// because a session has only one view per tick.
[[nodiscard]] bool has_more_information(const View& left, const View& right);

/// Returns the class of a client version. Servers build some objects differently for clients before
/// certain versions, so only views of the same class must agree.
[[nodiscard]] int version_class(std::int32_t version);

/// An event of a session that matters for the worlds of its server. Pointers are valid during the
/// call that passes the event.
struct WorldInput {
    enum class Kind : std::uint8_t {
        open, ///< the session begins, or its client reconnects; `server` is set
        map,  ///< the session's server announced a map; `map` is set
        /// The session received a verified snapshot. Set: `tick`, `items`, `world`, `dialect`,
        /// `roster`, `client_version`.
        snapshot,
        message, ///< the session received a message that may be for all players; `payload` is set
        close,   ///< the session ended
        time_passed, ///< no session had an event until `time`
    };
    Kind kind = Kind::time_passed;
    record::Timestamp time = 0;
    std::uint32_t session = 0;
    std::string_view server{};
    std::string_view server_name{}; ///< configured name, valid as long as the run; empty if none
    bool resumed = false;           ///< for `open`: another process inspected the session before
    const record::MapRecord* map = nullptr;
    snapshot::Tick tick = 0;
    snapshot::SnapshotView items{};
    /// Maps positions to tiles; null while the map is unknown.
    const record::TileMap* tile_map = nullptr;
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const record::Roster* roster = nullptr; ///< the players; only for 0.7
    std::int32_t client_version = 0;        ///< DDNet's version number; 0: vanilla or unknown
    std::span<const std::byte> payload{};   ///< the whole message, see record::MessageRecord
};

/// Receives inputs. An implementation must copy the data that it keeps.
class WorldInputSink : public record::Interface {
  public:
    virtual void on_input(const WorldInput& input) = 0;
};

/// The views (sessions' snapshots) of one tick, collected while views of further sessions may
/// arrive.
class OpenWorld {
  public:
    /// Starts a new tick and reuses the memory.
    void begin(snapshot::Tick tick, record::Timestamp time);

    /// Copies a view. `roster`: a copy of `input.roster`. Returns false if the session has a view
    /// in this tick already.
    [[nodiscard]] bool add_view(const WorldInput& input,
                                std::shared_ptr<const record::Roster> roster);

    [[nodiscard]] snapshot::Tick tick() const { return tick_; }

    /// The arrival time of the earliest view.
    [[nodiscard]] record::Timestamp time() const { return time_; }

    [[nodiscard]] std::size_t views() const { return stored_.size(); }

    [[nodiscard]] bool has(std::uint32_t session) const;

    /// An upper bound of this object's memory use in bytes. A roster that several ticks share counts
    /// for each of them.
    [[nodiscard]] std::size_t bytes() const {
        return ints_.size() * sizeof(std::int32_t) + stored_.size() * sizeof(StoredView) +
               rosters_ * kRosterBytes;
    }

    /// The allocated memory for ints, in bytes.
    [[nodiscard]] std::size_t allocated_bytes() const {
        return ints_.capacity() * sizeof(std::int32_t);
    }

    /// Fills `views`, sorted by has_more_information(). The views are valid until the next non-const call.
    void read(std::vector<View>& views) const;

  private:
    struct StoredView {
        View view{}; ///< the view without its items, which read() sets
        std::shared_ptr<const record::Roster> roster{};
        std::size_t begin = 0; ///< index of the view's first int in ints_
        std::size_t num_items = 0;
        std::size_t num_ints = 0;
    };

    /// A roster's size, up to the highest client id.
    static constexpr std::size_t kRosterBytes =
        sizeof(record::Roster) + record::Roster::kMaxClients * sizeof(record::Roster::Entry);

    snapshot::Tick tick_ = 0;
    record::Timestamp time_ = 0;
    std::size_t rosters_ = 0; ///< number of views with a roster
    std::vector<StoredView> stored_;
    /// The ints of all views, each view's in the layout of SnapshotView.
    snapshot::RawVector<std::int32_t> ints_;
};

/// Keeps the memory of finished ticks for new ticks. One object serves all servers; the kept memory
/// is limited.
class OpenWorldPool {
  public:
    [[nodiscard]] std::unique_ptr<OpenWorld> take_empty(snapshot::Tick tick,
                                                        record::Timestamp time);
    void recycle(std::unique_ptr<OpenWorld> world);

  private:
    static constexpr std::size_t kMaxSpare = 8;
    /// Limit of the kept memory in bytes: 64 views of 32 KiB each.
    static constexpr std::size_t kMaxSpareRoom = std::size_t{2} << 20U;

    std::vector<std::unique_ptr<OpenWorld>> spare_;
};

} // namespace tw::world
