#pragma once

#include "proxy/inspect/diagnosis/learned_sizes.h"
#include "proxy/inspect/diagnosis/size_search.h"
#include "proxy/inspect/reporter.h"
#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/objects.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tw::inspect {

/// Learns the item sizes of one connection's server from deltas that do not fit the agreed sizes.
///
/// An explanation is a set of item sizes under which the delta can be decoded. While several
/// explanations are possible, later deltas decide between them. Each explanation keeps its own
/// version of the undecided snapshots, because later deltas are based on these.
class SizeLearner {
  public:
    /// `shared`: sizes that sessions of the server learned; null: nothing is shared.
    explicit SizeLearner(const snapshot::AgreedSizes& agreed,
                         LearnedSizes::Server* shared = nullptr)
        : agreed_{agreed}, shared_{shared} {}

    /// A size counts as learned if this many items of the type were read, and this many verified snapshots
    /// contain the type. That is enough, because a wrong size is noticed: a valid key must follow each
    /// item, and the checksum covers the item's ints.
    static constexpr std::uint32_t kConfirmingItems = 3;
    /// If fewer items were read, a size also counts as learned after this many verified snapshots that
    /// contain the type: a second of play. So many are needed because an unchanged item proves only that
    /// the sum of its ints is right.
    static constexpr std::uint32_t kConfirmingSnapshots = 25;

    /// Limits of the undecided snapshots: their number, and the ints of all of them (1 MiB). If a limit is
    /// exceeded, the learner chooses the explanation that differs from the agreed sizes for the fewest
    /// types.
    static constexpr std::size_t kMaxUndecided = 16;
    static constexpr std::size_t kMaxUndecidedInts = std::size_t{256} << 10U;
    /// The most empty snapshots that repeat undecided ones. While nothing moves, a client gets this many
    /// before the server no longer stores their base.
    static constexpr std::size_t kMaxRepeats = snapshot::kHistoryTicks;

    /// A delta that does not fit the known sizes, with its context.
    struct MisfitDelta {
        DeltaInts delta;
        snapshot::Tick tick = 0;
        snapshot::SnapshotView right; ///< the last verified snapshot; empty if there is none
        const record::TypeNames* types = nullptr;
    };

    /// Searches for explanations of a delta that does not fit the known sizes. Returns whether there is
    /// exactly one, so that the delta can be decoded with sizes().
    bool on_misfit(const MisfitDelta& misfit, Reporter& reporter, SearchBudget& budget);
    /// A delta was decoded with sizes() and verified. `made`: the snapshot that it gives.
    void on_fit(const snapshot::Delta& delta, const snapshot::SnapshotView& made,
                snapshot::Tick tick, const record::TypeNames& types, Reporter& reporter);

    /// Whether the snapshot of this tick is undecided: several explanations are possible.
    [[nodiscard]] bool is_undecided(snapshot::Tick tick) const;
    /// Reads a delta whose base is undecided. Returns whether exactly one explanation is left. The caller
    /// then must put the base into the history with add_undecided_to().
    bool on_undecided(std::span<const std::int32_t> ints, snapshot::Tick base, snapshot::Tick tick,
                      std::int32_t crc);
    /// The empty snapshot of `tick` repeats the snapshot of `base`, which may be undecided.
    void on_empty(snapshot::Tick base, snapshot::Tick tick);
    /// Puts the undecided snapshots into the history, as the only explanation left decodes them.
    void add_undecided_to(snapshot::History& history);

    /// The learned sizes, and those that other sessions of the server learned.
    [[nodiscard]] std::vector<LearnedSize> save(snapshot::Dialect dialect) const;
    /// Continues with the sizes that a previous observer learned. When the next snapshot confirms them, they
    /// are reported again.
    void restore(std::span<const LearnedSize> learned, snapshot::Dialect dialect);

    /// Forgets the undecided snapshots. To be called if later deltas are not based on them (map change).
    void forget_undecided();

    [[nodiscard]] std::size_t memory_bytes() const {
        return sizeof(*this) + undecided_ints_ * sizeof(std::int32_t);
    }

    /// The item sizes to decode with: learned sizes, and agreed sizes for all other types.
    [[nodiscard]] const snapshot::AgreedSizes& sizes() const {
        return candidates_.size() == 1 ? candidates_.front().sizes : agreed_;
    }

  private:
    struct UndecidedSnapshot {
        snapshot::Tick tick = 0;
        snapshot::Snapshot items;
    };

    /// The evidence for the size of a type.
    struct Evidence {
        std::uint32_t items = 0;     ///< number of items read from deltas
        std::uint32_t snapshots = 0; ///< number of verified snapshots that contain the type
    };

    using EvidenceTable = std::array<Evidence, std::tuple_size_v<snapshot::AgreedSizes>>;

    /// One explanation: sizes that fit all deltas so far, the evidence for them, and the undecided
    /// snapshots decoded with these sizes.
    struct Candidate {
        snapshot::AgreedSizes sizes;
        EvidenceTable evidence{}; ///< by type; undecided snapshots count, too
        std::vector<UndecidedSnapshot> undecided{};
    };

    /// An empty snapshot whose base is an undecided snapshot, or another one of these.
    struct RepeatedSnapshot {
        snapshot::Tick tick = 0;
        snapshot::Tick base = 0;
        snapshot::Tick original = 0; ///< tick of the undecided snapshot that this one repeats
    };

    /// The tick of the undecided snapshot that the snapshot of `tick` repeats; `tick` if it repeats none.
    [[nodiscard]] snapshot::Tick original_of(snapshot::Tick tick) const;
    /// The sizes that other sessions of the server learned, and the agreed sizes of all other types.
    [[nodiscard]] snapshot::AgreedSizes hinted_sizes(snapshot::Dialect dialect) const;
    /// Drops the explanations that this delta contradicts, except if it contradicts all. Returns whether at
    /// least one explanation fits.
    [[nodiscard]] bool keep_fitting(const DeltaInts& delta);
    /// Tries the agreed sizes, those that other sessions learned, and those of the base's items. Returns
    /// whether these explain the delta.
    [[nodiscard]] bool take_hint(const MisfitDelta& misfit);
    [[nodiscard]] bool search(const MisfitDelta& misfit, std::int64_t time, SearchBudget& budget);
    void adopt_explanations(std::vector<snapshot::AgreedSizes> found,
                            const snapshot::AgreedSizes& before);
    /// Returns the delta with its base, as the explanation decodes the base.
    using DeltaOf = std::function<DeltaInts(const Candidate&)>;

    /// Stores an undecided snapshot, once for each explanation. Returns true if that exceeded a limit, so
    /// that one explanation was chosen.
    [[nodiscard]] bool keep_undecided(snapshot::Tick tick, const DeltaOf& delta_of);
    /// The types whose new size is the same in all explanations and was not reported yet.
    [[nodiscard]] NumberedTypes unreported_types() const;
    /// Adds a delta to the evidence of each explanation.
    void count_evidence(const DeltaOf& delta_of);
    /// Reports those sizes of this snapshot's types that count as learned by now. `made`: the verified
    /// snapshot; empty if only the delta is known.
    void report_confirmed(const TypesSeen& seen, const snapshot::SnapshotView& made,
                          snapshot::Tick tick, const record::TypeNames& types, Reporter& reporter);

    snapshot::AgreedSizes agreed_;
    LearnedSizes::Server* shared_;
    std::vector<Candidate> candidates_; ///< possible explanations
    NumberedTypes reported_;            ///< types whose size was reported
    std::uint32_t num_unexplained_ = 0; ///< number of deltas in a row without an explanation
    std::int64_t left_ = SearchBudget::kPerSession;
    std::size_t undecided_ints_ = 0;
    std::vector<RepeatedSnapshot> repeats_;
};

} // namespace tw::inspect
