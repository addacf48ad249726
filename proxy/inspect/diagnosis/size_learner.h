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

/// Item sizes learned by the sessions of a run, by server. Later sessions of the same server try
/// them first. Thread-safe.
class LearnedSizes {
  public:
    /// Sessions of further servers share nothing, but still learn by themselves.
    static constexpr std::size_t kMaxServers = 256;

    class Server {
      public:
        /// The size that a session learned last for this type; nullopt if none.
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

        /// Size plus 1; 0 if unknown.
        using Sizes =
            std::array<std::atomic<std::uint16_t>, std::tuple_size_v<snapshot::AgreedSizes>>;

        std::atomic<std::size_t> name_{0}; ///< hash of the address; 0: free slot
        std::array<Sizes, snapshot::kDialects> sizes_{};
    };

    /// The entry of this address, valid as long as this table; null if the table is full.
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

/// Learns the item sizes of one connection's server from deltas that do not fit the agreed sizes.
/// While several explanations are possible, later deltas decide between them; each explanation
/// keeps its own version of the snapshots, because later deltas are based on them.
class SizeLearner {
  public:
    /// `shared`: sizes learned by other sessions of the server; null: nothing is shared.
    explicit SizeLearner(const snapshot::AgreedSizes& agreed,
                         LearnedSizes::Server* shared = nullptr)
        : agreed_{agreed}, shared_{shared} {}

    /// A size counts as learned once this many items of the type were read and this many verified
    /// snapshots contain one. A wrong size would show: each item is followed by a valid key, and
    /// the checksum covers the item's ints.
    static constexpr std::uint32_t kConfirmed = 3;
    /// If fewer than kConfirmed items of a type were read, this many verified snapshots that
    /// contain one are enough: a second of play. A delta that repeats an item proves only that the
    /// sum of its ints is unchanged.
    static constexpr std::uint32_t kConfirmingSnapshots = 25;

    /// Limits of the undecided snapshots: their number, and the ints of all of them (1 MiB). Beyond
    /// these, the explanation that differs for the fewest types is taken.
    static constexpr std::size_t kMaxUndecided = 16;
    static constexpr std::size_t kMaxUndecidedInts = std::size_t{256} << 10U;

    /// A delta that did not fit, with its context.
    struct Misfit {
        DeltaInts delta;
        snapshot::Tick tick = 0;
        snapshot::SnapshotView right; ///< the last right snapshot
        const record::TypeNames* types = nullptr;
    };

    /// A delta does not fit the known sizes. Returns whether exactly one explanation exists;
    /// `sizes` then decodes the delta.
    bool on_misfit(const Misfit& misfit, Reporter& reporter, SearchBudget& budget);
    /// A delta was decoded with `sizes` and verified; `made` is its snapshot.
    void on_fit(const snapshot::Delta& delta, const snapshot::SnapshotView& made,
                snapshot::Tick tick, const record::TypeNames& types, Reporter& reporter);

    /// Whether the snapshot of this tick is undecided.
    [[nodiscard]] bool is_undecided(snapshot::Tick tick) const;
    /// Reads a delta whose base is undecided. Returns whether exactly one explanation is left;
    /// `settle` then provides the base.
    bool on_undecided(std::span<const std::int32_t> ints, snapshot::Tick base, snapshot::Tick tick,
                      std::int32_t crc);
    /// Puts the undecided snapshots into the history, as the one remaining explanation has them.
    void settle(snapshot::History& history);

    /// Forgets the undecided snapshots, as after a map change.
    void forget_undecided();

    [[nodiscard]] std::size_t memory_bytes() const {
        return sizeof(*this) + undecided_ints_ * sizeof(std::int32_t);
    }

    /// The agreed sizes, replaced by the learned ones.
    [[nodiscard]] const snapshot::AgreedSizes& sizes() const {
        return candidates_.size() == 1 ? candidates_.front().sizes : agreed_;
    }

  private:
    struct Undecided {
        snapshot::Tick tick = 0;
        snapshot::Snapshot items;
    };

    /// One explanation: sizes that fit all deltas so far, and the undecided snapshots they give.
    struct Candidate {
        snapshot::AgreedSizes sizes;
        std::vector<Undecided> undecided{};
        /// Number of items of each type read with these sizes.
        std::array<std::uint32_t, std::tuple_size_v<snapshot::AgreedSizes>> read{};
    };

    /// The evidence for the learned size of a type.
    struct Evidence {
        std::uint32_t items = 0;     ///< items read from deltas
        std::uint32_t snapshots = 0; ///< verified snapshots that contain the type
    };

    /// The agreed sizes, replaced by those that other sessions of the server learned.
    [[nodiscard]] snapshot::AgreedSizes hinted_sizes(snapshot::Dialect dialect) const;
    /// Drops explanations that do not fit this delta, unless none fits. Returns whether any fits.
    [[nodiscard]] bool keep_fitting(const DeltaInts& delta);
    /// Tries the sizes known from other sessions or from the base's items. Returns whether they
    /// explain the delta.
    [[nodiscard]] bool take_hint(const Misfit& misfit);
    [[nodiscard]] bool search(const Misfit& misfit, std::int64_t time, SearchBudget& budget);
    void adopt(std::vector<snapshot::AgreedSizes> found, const snapshot::AgreedSizes& before);
    /// Keeps the snapshot for each explanation. `delta_of`: the delta on the base that the
    /// explanation has. Returns true if there is no room, which leaves one explanation.
    [[nodiscard]] bool keep_undecided(snapshot::Tick tick,
                                      const std::function<DeltaInts(const Candidate&)>& delta_of);
    /// Types for which all explanations give the same new size, not yet reported.
    [[nodiscard]] NumberedTypes unnamed() const;
    /// `made`: the verified snapshot; empty if only the delta is known.
    void confirm(const TypesSeen& seen, const snapshot::SnapshotView& made, snapshot::Tick tick,
                 const record::TypeNames& types, Reporter& reporter);

    snapshot::AgreedSizes agreed_;
    LearnedSizes::Server* shared_;
    std::vector<Candidate> candidates_; ///< possible explanations
    std::array<Evidence, std::tuple_size_v<snapshot::AgreedSizes>> evidence_{};
    NumberedTypes told_;
    std::uint32_t num_unexplained_ = 0; ///< deltas in a row without an explanation
    std::int64_t left_ = SearchBudget::kPerSession;
    std::size_t undecided_ints_ = 0;
};

} // namespace tw::inspect
