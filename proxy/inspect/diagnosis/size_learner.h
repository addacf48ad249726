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
#include <tuple>
#include <vector>

namespace tw::inspect {

/// An item size that differs from the size agreed in the protocol, with the evidence for it.
struct LearnedSize {
    std::uint16_t type = 0;
    std::uint8_t size = 0;     ///< number of ints; 0: deltas contain the size
    bool is_confirmed = false; ///< enough evidence was found, so a session has reported the size
    /// Number of items of this type that the session read from deltas; 0 if another session learned
    /// the size.
    std::uint32_t num_items = 0;
    /// Number of the session's verified snapshots that contain the type.
    std::uint32_t num_snapshots = 0;

    friend bool operator==(const LearnedSize&, const LearnedSize&) = default;
};

/// The item sizes that sessions have learned, by server. Later sessions of a server try these sizes
/// first. Thread-safe.
class LearnedSizeTable {
  public:
    /// The most servers whose sizes are stored. The sessions of further servers share no sizes.
    static constexpr std::size_t kMaxServers = 256;

    class ServerSizes {
      public:
        /// Returns the size of this type that a session learned most recently; nullopt if no
        /// session learned one.
        [[nodiscard]] std::optional<std::uint8_t> find_size(snapshot::Dialect dialect,
                                                            std::uint16_t type) const {
            const std::uint16_t size =
                sizes_plus_one_[static_cast<std::size_t>(dialect)][type].load(
                    std::memory_order_relaxed);
            return size == 0 ? std::nullopt : std::optional{static_cast<std::uint8_t>(size - 1)};
        }

        void set_size(snapshot::Dialect dialect, std::uint16_t type, std::uint8_t size) {
            sizes_plus_one_[static_cast<std::size_t>(dialect)][type].store(
                static_cast<std::uint16_t>(size + 1), std::memory_order_relaxed);
        }

      private:
        friend class LearnedSizeTable;

        /// For each type, its size plus 1; 0 if the size is unknown.
        using SizesPlusOne = std::array<std::atomic<std::uint16_t>, kNumberedTypes>;

        std::atomic<std::size_t> address_hash_{0}; ///< hash of the address; 0: free slot
        std::array<SizesPlusOne, snapshot::kDialects> sizes_plus_one_{};
    };

    /// Returns the sizes of the server with this address. Adds the server if necessary; returns
    /// null if the table is full. The result is valid as long as this table.
    [[nodiscard]] ServerSizes* find_or_add_server(std::string_view address) {
        const std::size_t name = std::hash<std::string_view>{}(address) | 1U;
        for (ServerSizes& each : servers_) {
            std::size_t taken = 0;
            if (each.address_hash_.compare_exchange_strong(taken, name) || taken == name) {
                return &each;
            }
        }
        return nullptr;
    }

  private:
    std::array<ServerSizes, kMaxServers> servers_;
};

/// Learns the item sizes of one connection's server from deltas that do not fit the agreed sizes.
///
/// An explanation is a set of item sizes with which the delta can be decoded. A snapshot is
/// undecided while several explanations fit it. Later deltas show which explanation is right.
/// Because they are based on undecided snapshots, each undecided snapshot is stored once for each
/// explanation.
class SizeLearner {
  public:
    /// `types`: the item types of the connection. `shared`: the sizes that sessions of the server
    /// learned; null if sessions share no sizes. Both must outlive this object.
    explicit SizeLearner(const record::ItemTypes& types,
                         LearnedSizeTable::ServerSizes* shared = nullptr)
        : types_{&types}, agreed_sizes_{types.objects().sizes(types.dialect())}, shared_sizes_{
                                                                                     shared} {}

    /// A size counts as learned if this many items of the type were read, and this many verified
    /// snapshots contain the type. This is enough, because almost every wrong size is noticed: a
    /// valid key must follow each item, and the checksum covers the item's ints.
    static constexpr std::uint32_t kConfirmingItems = 3;
    /// A size also counts as learned if at least one item was read and this many verified snapshots
    /// contain the type (a second of play). This many are necessary, because an unchanged item
    /// proves only that the sum of its ints is right.
    static constexpr std::uint32_t kConfirmingSnapshots = 25;

    /// The most undecided snapshots. If this limit or kMaxUndecidedInts is exceeded, the learner
    /// chooses the explanation that differs from the agreed sizes for the fewest types.
    static constexpr std::size_t kMaxUndecidedSnapshots = 16;
    /// The most ints in all undecided snapshots together (1 MiB).
    static constexpr std::size_t kMaxUndecidedInts = std::size_t{256} << 10U;
    /// The most empty snapshots that repeat undecided snapshots. While nothing moves, a client gets
    /// at most this many before the server drops their base.
    static constexpr std::size_t kMaxRepeatedSnapshots = snapshot::kHistoryTicks;

    /// A delta that does not fit the known sizes, with its tick and the newest verified snapshot.
    struct MisfitDelta {
        DeltaWithUnknownSizes delta;
        snapshot::Tick tick = 0;
        /// The newest verified snapshot; empty if there is none.
        snapshot::SnapshotView newest_verified;
    };

    /// Searches for explanations of a delta that does not fit the known sizes. Returns whether
    /// exactly one explanation was found. If so, the delta can be decoded with decoding_sizes().
    bool on_misfit_delta(const MisfitDelta& misfit, Reporter& reporter, SearchBudget& budget);
    /// Called when a delta was decoded with decoding_sizes() and verified. `made`: the rebuilt
    /// snapshot.
    void on_verified_delta(const snapshot::Delta& delta, const snapshot::SnapshotView& made,
                           snapshot::Tick tick, Reporter& reporter);

    /// Whether several explanations fit the snapshot of this tick.
    [[nodiscard]] bool is_snapshot_undecided(snapshot::Tick tick) const;
    /// Reads a delta whose base is undecided. Returns whether exactly one explanation remains. If
    /// so, the caller must put the base into the history with add_undecided_snapshots_to().
    bool on_delta_with_undecided_base(std::span<const std::int32_t> ints, snapshot::Tick base,
                                      snapshot::Tick tick, std::int32_t crc);
    /// Called when an empty snapshot arrived: the snapshot of `tick` equals the snapshot of `base`.
    /// If the snapshot of `base` is undecided, so is the snapshot of `tick`.
    void on_empty_snapshot(snapshot::Tick base, snapshot::Tick tick);
    /// Puts the undecided snapshots into the history, decoded with the sizes of the one explanation
    /// that remains.
    void add_undecided_snapshots_to(snapshot::History& history);

    /// Returns the item types' sizes that this session and the server's other sessions learned.
    [[nodiscard]] std::vector<LearnedSize> learned_sizes() const;
    /// Continues with the sizes that a previous observer learned. When later snapshots confirm a
    /// size, it is reported again.
    void restore_learned_sizes(std::span<const LearnedSize> learned);

    /// Forgets the undecided snapshots and all ticks. Called when later deltas are not based on
    /// earlier snapshots, and ticks may begin again, for example after a map change.
    void forget_snapshots();

    [[nodiscard]] std::size_t memory_bytes() const {
        return sizeof(*this) + undecided_ints_ * sizeof(std::int32_t);
    }

    /// Returns the item sizes to decode with: learned sizes, and agreed sizes for all other types.
    /// While several explanations fit, returns only agreed sizes.
    [[nodiscard]] const snapshot::AgreedSizes& decoding_sizes() const {
        return explanations_.size() == 1 ? explanations_.front().sizes : agreed_sizes_;
    }

  private:
    struct UndecidedSnapshot {
        snapshot::Tick tick = 0;
        snapshot::Snapshot items;
    };

    /// The evidence for the size of a type.
    struct SizeEvidence {
        std::uint32_t num_items = 0;     ///< number of items read from deltas
        std::uint32_t num_snapshots = 0; ///< number of verified snapshots that contain the type
        /// Tick of the first of these snapshots; nullopt if it was on an earlier map, or an earlier
        /// observer process saw it.
        std::optional<snapshot::Tick> first_tick{};

        void add_snapshot(snapshot::Tick tick, std::uint32_t new_items) {
            first_tick = num_snapshots == 0 ? tick : first_tick;
            num_items += new_items;
            ++num_snapshots;
        }
    };

    using SizeEvidenceTable = std::array<SizeEvidence, kNumberedTypes>;

    /// An explanation: sizes that fit all deltas so far, the evidence for these sizes, and the
    /// undecided snapshots decoded with these sizes.
    struct Explanation {
        snapshot::AgreedSizes sizes;
        SizeEvidenceTable evidence{}; ///< by type; includes evidence in undecided snapshots
        std::vector<UndecidedSnapshot> undecided_snapshots{};
    };

    /// A snapshot without changes. Its base is an undecided snapshot or a repeat of one.
    struct RepeatedSnapshot {
        snapshot::Tick tick = 0;
        snapshot::Tick base = 0;
        snapshot::Tick original = 0; ///< tick of the undecided snapshot that this one repeats
    };

    /// Returns the tick of the undecided snapshot that the snapshot of `tick` repeats; `tick`
    /// itself if there is no such snapshot.
    [[nodiscard]] snapshot::Tick original_tick_of_repeat(snapshot::Tick tick) const;
    /// Returns the sizes that other sessions of the server learned. Types without such a size have
    /// the size in decoding_sizes().
    [[nodiscard]] snapshot::AgreedSizes sizes_learned_by_others() const;
    /// Returns the delta that is being examined. Its base depends on the explanation.
    using DeltaGetter = std::function<DeltaWithUnknownSizes(const Explanation&)>;

    /// Removes the explanations that this delta contradicts, except if it contradicts all
    /// explanations. Returns whether at least one explanation fits the delta.
    [[nodiscard]] bool drop_contradicted_explanations(const DeltaGetter& delta_of);
    /// Tries the agreed sizes, the sizes that other sessions learned, and the sizes of the base's
    /// items. Returns whether one of these sets of sizes explains the delta.
    [[nodiscard]] bool try_likely_sizes(const MisfitDelta& misfit);
    [[nodiscard]] bool search_explanations(const MisfitDelta& misfit, std::int64_t time,
                                           SearchBudget& budget);
    void adopt_explanations(std::vector<snapshot::AgreedSizes> found,
                            const snapshot::AgreedSizes& before);
    /// Stores an undecided snapshot, once for each explanation. If a limit is exceeded, chooses one
    /// explanation and returns true.
    [[nodiscard]] bool store_undecided_snapshot(snapshot::Tick tick, const DeltaGetter& delta_of);
    /// Returns the types whose size is the same in all remaining explanations, differs from the
    /// agreed size, and was not reported yet.
    [[nodiscard]] NumberedTypeSet unreported_types() const;
    void count_delta_as_evidence(const DeltaGetter& delta_of, snapshot::Tick tick);
    void forget_undecided_snapshots();
    /// Reports the sizes of this snapshot's types that now count as learned. `made`: the verified
    /// snapshot; empty if only the delta is known.
    void report_learned_sizes(const ItemTypeCounts& seen, const snapshot::SnapshotView& made,
                              snapshot::Tick tick, Reporter& reporter);

    const record::ItemTypes* types_;
    snapshot::AgreedSizes agreed_sizes_;
    LearnedSizeTable::ServerSizes* shared_sizes_;
    std::vector<Explanation> explanations_; ///< all that fit the deltas so far
    NumberedTypeSet reported_types_;
    std::uint32_t num_unexplained_deltas_ = 0;
    /// Number of items that searches may still read.
    std::int64_t search_items_left_ = SearchBudget::kItemsPerSession;
    std::size_t undecided_ints_ = 0; ///< number of ints in all undecided snapshots
    std::vector<RepeatedSnapshot> repeated_snapshots_;
};

} // namespace tw::inspect
