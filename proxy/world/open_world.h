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

/// What happens to a session, as far as it matters for the worlds of its server. What it points at
/// lives as long as the call that hands it over.
struct Input {
    enum class Kind : std::uint8_t {
        open,     ///< a session begins, or goes on with another connection: `server`
        map,      ///< it is told of a map: `map`
        snapshot, ///< a verified one: `tick`, `items`, `world`, `dialect`, `roster`, `client_version`
        message,     ///< it is told something that may be for everybody: `payload`
        close,       ///< it is over
        time_passed, ///< nothing happened up to this time
    };
    Kind kind = Kind::time_passed;
    record::Timestamp time = 0;
    std::uint32_t session = 0;
    std::string_view server{};
    std::string_view server_name{}; ///< lives as long as the run; empty: it has none
    bool resumed = false;           ///< opened: another process had it until now
    const record::MapRecord* map = nullptr;
    snapshot::Tick tick = 0;
    snapshot::SnapshotView items{};
    const record::World* world = nullptr; ///< where positions land; null while no map is known
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const record::Roster* roster = nullptr; ///< who plays; only of 0.7
    std::int32_t client_version = 0;        ///< as DDNet counts them; 0: vanilla, or not known
    std::span<const std::byte> payload{};   ///< as of record::MessageRecord
};

/// Takes inputs; what it wants to keep, it copies.
class InputSink {
  public:
    InputSink() = default;
    InputSink(const InputSink&) = delete;
    InputSink& operator=(const InputSink&) = delete;
    InputSink(InputSink&&) = delete;
    InputSink& operator=(InputSink&&) = delete;
    virtual ~InputSink() = default;

    virtual void on_input(const Input& input) = 0;
};

/// The views of one tick, until it is decided that there are no more. Most of them have most of their
/// items alike: of those only what differs is kept.
class OpenWorld {
  public:
    /// Begins anew, with the memory it has.
    void begin(snapshot::Tick tick, record::Timestamp time);

    /// Keeps a copy. `roster`: one of `input.roster`. False: this session's is there.
    [[nodiscard]] bool add(const Input& input, std::shared_ptr<const record::Roster> roster);

    [[nodiscard]] snapshot::Tick tick() const { return tick_; }

    /// When the earliest of them came.
    [[nodiscard]] record::Timestamp time() const { return time_; }

    [[nodiscard]] std::size_t views() const { return stored_.size(); }

    [[nodiscard]] bool has(std::uint32_t session) const;

    /// What it keeps, at most; the same roster counts with each view that has it.
    [[nodiscard]] std::size_t bytes() const {
        return ints_.size() * sizeof(std::int32_t) + shared_.runs.size() * sizeof(SharedRun) +
               stored_.size() * sizeof(Stored) + rosters_ * kRosterBytes;
    }

    /// What it has room for without asking for more.
    [[nodiscard]] std::size_t room() const { return ints_.capacity() * sizeof(std::int32_t); }

    /// The one that says most first. They live until something changes here, or it is called again.
    void read(std::vector<View>& views) const;

  private:
    /// A snapshot, in ints_.
    struct Block {
        std::size_t begin = 0;
        std::size_t num_items = 0;
        std::size_t num_ints = 0;
    };

    struct Stored {
        View view{}; ///< but for what it points at
        std::shared_ptr<const record::Roster> roster{};
        bool shares = false; ///< those of the bases that are in its runs
        Block items{};
        std::size_t runs = 0; ///< in shared_
        std::size_t num_runs = 0;
    };

    /// An item that the first base does not have yet.
    struct Added {
        std::uint32_t place = 0; ///< that it will be in front of
        std::uint32_t item = 0;  ///< its index in the rest of a view
    };

    /// Fewer are not worth another base: each view that comes is compared with it.
    static constexpr std::size_t kWorthBase = 6;
    /// What the first base lacks is put into it so often: the first views see what the others will.
    static constexpr int kMostWidenings = 4;

    [[nodiscard]] snapshot::SnapshotView items_of(const Block& block) const;
    [[nodiscard]] Block keep(const snapshot::SnapshotView& items);
    void keep_shared(const snapshot::SnapshotView& items, Stored& stored);
    void begin_bases(const snapshot::SnapshotView& items, std::optional<std::uint16_t> own);
    /// Notes what a view has of the bases; returns the rest, which is kept.
    [[nodiscard]] Block share(const snapshot::SnapshotView& items);
    [[nodiscard]] snapshot::SnapshotView take_back(const Block& block);
    [[nodiscard]] bool is_wide_enough(const snapshot::SnapshotView& rest) const;
    void widen(const snapshot::SnapshotView& rest, std::optional<std::uint16_t> own);
    void move_runs();

    /// Entries of a roster, up to the highest client id.
    static constexpr std::size_t kRosterBytes =
        sizeof(record::Roster) + record::Roster::kMaxClients * sizeof(record::Roster::Entry);

    snapshot::Tick tick_ = 0;
    record::Timestamp time_ = 0;
    std::size_t rosters_ = 0; ///< views with one
    std::vector<Stored> stored_;
    std::vector<std::uint32_t> sessions_;    ///< of `stored_`
    snapshot::RawVector<std::int32_t> ints_; ///< blocks as of SnapshotView, one behind the other
    std::vector<Block> bases_;
    int widenings_ = 0; ///< of the first one
    SharedItems shared_;
    // Kept for their memory:
    mutable std::vector<snapshot::SnapshotView> read_bases_; ///< as they stand in ints_
    std::vector<Added> added_;
    std::vector<std::uint32_t> moved_;       ///< of each item of the first base: where it is now
    snapshot::RawVector<std::int32_t> rest_; ///< of a view, what no base has; as a block
    snapshot::RawVector<std::int32_t> former_rest_;
};

/// The memory of ticks that are over, for those that begin: of all servers together, and no more than
/// busy ones need.
class OpenWorlds {
  public:
    [[nodiscard]] std::unique_ptr<OpenWorld> begin(snapshot::Tick tick, record::Timestamp time);
    void give_back(std::unique_ptr<OpenWorld> world);

  private:
    static constexpr std::size_t kMaxSpare = 8;
    /// 64 players with 32 KiB each.
    static constexpr std::size_t kMaxSpareRoom = std::size_t{2} << 20U;

    std::vector<std::unique_ptr<OpenWorld>> spare_;
};

} // namespace tw::world
