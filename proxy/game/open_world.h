#pragma once

#include "proxy/game/input.h"
#include "proxy/game/view.h"
#include "proxy/record/roster.h"
#include "snapshot/raw_vector.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tw::game {

/// The views of one tick, until it is decided that there are no more.
class OpenWorld {
  public:
    /// Begins anew, with the memory it has.
    void begin(snapshot::Tick tick, record::Timestamp time);

    /// Keeps a copy. `roster`: one of `input.roster`. False: this session's is there.
    [[nodiscard]] bool add(const Input& input, std::shared_ptr<const record::Roster> roster);

    [[nodiscard]] snapshot::Tick tick() const { return tick_; }

    /// When the first of them came.
    [[nodiscard]] record::Timestamp time() const { return time_; }

    [[nodiscard]] std::size_t views() const { return stored_.size(); }

    [[nodiscard]] bool has(std::uint32_t session) const;

    /// What it keeps, at most; the same roster counts with each view that has it.
    [[nodiscard]] std::size_t bytes() const {
        return ints_.size() * sizeof(std::int32_t) + stored_.size() * sizeof(Stored) +
               rosters_ * kRosterBytes;
    }

    /// What it has room for without asking for more.
    [[nodiscard]] std::size_t room() const { return ints_.capacity() * sizeof(std::int32_t); }

    /// The one that says most first. They live until something changes here.
    void read(std::vector<View>& views) const;

  private:
    struct Stored {
        std::uint32_t session = 0;
        std::int32_t version = 0;
        snapshot::Dialect dialect = snapshot::Dialect::six;
        std::shared_ptr<const record::Roster> roster{};
        std::size_t begin = 0; ///< in ints_
        std::size_t num_items = 0;
        std::size_t num_ints = 0;
    };

    /// Entries of a roster, up to the highest client id.
    static constexpr std::size_t kRosterBytes =
        sizeof(record::Roster) + record::Roster::kMaxClients * sizeof(record::Roster::Entry);

    snapshot::Tick tick_ = 0;
    record::Timestamp time_ = 0;
    std::size_t rosters_ = 0; ///< views with one
    std::vector<Stored> stored_;
    snapshot::RawVector<std::int32_t> ints_; ///< blocks as of SnapshotView, one behind the other
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

} // namespace tw::game
