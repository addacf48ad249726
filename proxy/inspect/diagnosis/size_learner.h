#pragma once

#include "proxy/inspect/diagnosis/size_search.h"
#include "proxy/inspect/reporter.h"
#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/objects.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::inspect {

/// Sizes that the sessions of a run have named, by server: a later session of the same server tries
/// them first. May be used by several threads.
class LearnedSizes {
  public:
    /// Servers beyond this many share nothing; their sessions still learn, each by itself.
    static constexpr std::size_t kMaxServers = 256;

    class Server {
      public:
        /// The size of this type that a session named last; nullopt: none did.
        [[nodiscard]] std::optional<std::uint8_t> find(snapshot::Dialect dialect,
                                                       std::uint16_t type) const {
            const std::uint16_t size =
                sizes_[static_cast<std::size_t>(dialect)][type].load(std::memory_order_relaxed);
            return size == 0 ? std::nullopt : std::optional{static_cast<std::uint8_t>(size - 1)};
        }

        void set(snapshot::Dialect dialect, std::uint16_t type, std::uint8_t size) {
            sizes_[static_cast<std::size_t>(dialect)][type].store(
                static_cast<std::uint16_t>(size + 1), std::memory_order_relaxed);
        }

      private:
        friend class LearnedSizes;

        using Sizes = std::array<std::atomic<std::uint16_t>,
                                 std::tuple_size_v<snapshot::AgreedSizes>>; ///< plus 1; 0: none

        std::atomic<std::size_t> name_{0}; ///< its hash; 0: the place is free
        std::array<Sizes, snapshot::kDialects> sizes_{};
    };

    /// The server of this address, which lives as long as this table; null: the table is full.
    [[nodiscard]] Server* server(std::string_view address) {
        const std::size_t name = std::hash<std::string_view>{}(address) | 1U;
        for (Server& each : servers_) {
            std::size_t taken = 0;
            if (each.name_.compare_exchange_strong(taken, name) || taken == name) {
                return &each;
            }
        }
        return nullptr;
    }

  private:
    std::array<Server, kMaxServers> servers_;
};

/// The sizes that one connection's server uses, worked out from the deltas that do not fit the
/// agreed ones. While several explanations hold, the deltas that follow decide between them; the
/// snapshots of all of them are kept meanwhile, since the next deltas build on these.
class SizeLearner {
  public:
    /// `shared`: what other sessions of the server named; null: nothing is shared.
    explicit SizeLearner(const snapshot::AgreedSizes& agreed,
                         LearnedSizes::Server* shared = nullptr)
        : agreed_{agreed}, shared_{shared} {}

    /// A size is named once this many items of the type were read, and this many verified snapshots
    /// hold one. A wrong size would show: each item is followed by a key that fits, and the checksum
    /// counts the item's ints.
    static constexpr std::uint32_t kConfirmed = 3;
    /// Verified snapshots that hold an item of a type of which fewer were read: a second of play.
    /// A delta that repeats an item proves only that its ints add up to the same as before.
    static constexpr std::uint32_t kHeldLong = 25;

    /// Snapshots that are kept undecided, and the ints of them all (1 MiB). Then the explanation that
    /// differs for the fewest types is taken.
    static constexpr std::size_t kMaxUndecided = 16;
    static constexpr std::size_t kMaxUndecidedInts = std::size_t{256} << 10U;

    /// What is known where a delta did not fit.
    struct Misfit {
        DeltaInts delta;
        snapshot::Tick tick = 0;
        snapshot::SnapshotView right; ///< the last snapshot that was
        const record::TypeNames* types = nullptr;
    };

    /// A delta does not fit. Whether there is one explanation: `sizes` then reads it.
    bool on_misfit(const Misfit& misfit, Reporter& reporter, SearchBudget& budget);
    /// A delta was read with `sizes` and is right; it made this snapshot.
    void on_fit(const snapshot::Delta& delta, const snapshot::SnapshotView& made,
                snapshot::Tick tick, const record::TypeNames& types, Reporter& reporter);

    /// Whether the snapshot of this tick is kept undecided.
    [[nodiscard]] bool is_undecided(snapshot::Tick tick) const;
    /// A delta whose base is undecided, as ints. Whether one explanation is left; `settle` then
    /// gives the base.
    bool on_undecided(std::span<const std::int32_t> ints, snapshot::Tick base, snapshot::Tick tick,
                      std::int32_t crc);
    /// One explanation is left: what was undecided goes into the history as that one has it.
    void settle(snapshot::History& history);

    /// The undecided snapshots are bases no more, as after a change of map.
    void forget_undecided();

    [[nodiscard]] std::size_t memory_bytes() const {
        return sizeof(*this) + undecided_ints_ * sizeof(std::int32_t);
    }

    /// The agreed ones, but for what was found.
    [[nodiscard]] const snapshot::AgreedSizes& sizes() const {
        return candidates_.size() == 1 ? candidates_.front().sizes : agreed_;
    }

  private:
    struct Undecided {
        snapshot::Tick tick = 0;
        snapshot::Snapshot items;
    };

    /// Sizes that explain all that was seen, and the undecided snapshots that they make.
    struct Candidate {
        snapshot::AgreedSizes sizes;
        std::vector<Undecided> undecided{};
        /// Items of each type that these were read with.
        std::array<std::uint32_t, std::tuple_size_v<snapshot::AgreedSizes>> read{};
    };

    /// What says that a type has the size that was found.
    struct Evidence {
        std::uint32_t items = 0;     ///< read from deltas
        std::uint32_t snapshots = 0; ///< verified ones that hold the type
    };

    /// The sizes, with those that other sessions of the server named.
    [[nodiscard]] snapshot::AgreedSizes hinted_sizes(snapshot::Dialect dialect) const;
    /// Drops the explanations that do not hold for this delta as well, unless none does.
    [[nodiscard]] bool keep_fitting(const DeltaInts& delta);
    /// Takes the sizes that other sessions or the base's items tell, if these explain the delta.
    [[nodiscard]] bool take_hint(const Misfit& misfit);
    [[nodiscard]] bool search(const Misfit& misfit, std::int64_t time, SearchBudget& budget);
    void adopt(std::vector<snapshot::AgreedSizes> found, const snapshot::AgreedSizes& before);
    /// `delta_of`: the delta that made it, on the base that the explanation has. Whether there is no
    /// room: one explanation is left then.
    [[nodiscard]] bool keep_undecided(snapshot::Tick tick,
                                      const std::function<DeltaInts(const Candidate&)>& delta_of);
    /// Types whose size differs in all explanations alike and is not named yet.
    [[nodiscard]] NumberedTypes unnamed() const;
    /// `made`: the snapshot, where it is known beyond the delta.
    void confirm(const TypesSeen& seen, const snapshot::SnapshotView& made, snapshot::Tick tick,
                 const record::TypeNames& types, Reporter& reporter);

    snapshot::AgreedSizes agreed_;
    LearnedSizes::Server* shared_;
    std::vector<Candidate> candidates_; ///< each explains what was seen
    std::array<Evidence, std::tuple_size_v<snapshot::AgreedSizes>> evidence_{};
    NumberedTypes told_;
    std::uint32_t misfits_ = 0; ///< in a row that nothing explained
    std::int64_t left_ = SearchBudget::kASession;
    std::size_t undecided_ints_ = 0;
};

} // namespace tw::inspect
