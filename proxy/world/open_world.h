#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/world/view.h"
#include "snapshot/arena.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::world {

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
    const record::World* world = nullptr;
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const record::Roster* roster = nullptr; ///< the players; only for 0.7
    std::int32_t client_version = 0;        ///< DDNet's version number; 0: vanilla or unknown
    std::span<const std::byte> payload{};   ///< the whole message, see record::MessageRecord
};

/// Receives inputs. An implementation must copy the data that it keeps.
class WorldInputSink {
  public:
    WorldInputSink() = default;
    WorldInputSink(const WorldInputSink&) = delete;
    WorldInputSink& operator=(const WorldInputSink&) = delete;
    WorldInputSink(WorldInputSink&&) = delete;
    WorldInputSink& operator=(WorldInputSink&&) = delete;
    virtual ~WorldInputSink() = default;

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
