#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/inspect/size_search.h"
#include "snapshot/delta.h"

#include <array>
#include <cstdint>
#include <vector>

namespace tw::inspect {

/// The sizes that one connection's server uses, worked out from the deltas that do not fit the
/// agreed ones. An explanation counts when it holds for several snapshots; until then the next one
/// that fails decides between those that are left.
class SizeLearner {
  public:
    explicit SizeLearner(const snapshot::AgreedSizes& agreed) : agreed_{agreed} {}

    /// Snapshots that must agree on a size before it is reported.
    static constexpr std::uint32_t kConfirmed = 3;

    /// What is known where a delta did not fit.
    struct Misfit {
        DeltaInts delta;
        snapshot::Tick tick = 0;
        snapshot::SnapshotView right; ///< the last snapshot that was
        const record::TypeNames* types = nullptr;
    };

    /// A delta does not fit. Whether there is one explanation: `sizes` then reads it.
    bool on_misfit(const Misfit& misfit, Reporter& reporter, SearchBudget& budget);
    /// A delta was read with `sizes` and is right.
    void on_fit(const snapshot::Delta& delta, snapshot::Tick tick, const record::TypeNames& types,
                Reporter& reporter);

    /// The agreed ones, but for what was found.
    [[nodiscard]] const snapshot::AgreedSizes& sizes() const {
        return candidates_.size() == 1 ? candidates_.front() : agreed_;
    }

  private:
    /// Drops the explanations that do not hold for this delta as well, unless none does.
    [[nodiscard]] bool keep_fitting(const DeltaInts& delta);
    [[nodiscard]] bool search(const Misfit& misfit, std::int64_t time, SearchBudget& budget);
    void confirm(const TypesSeen& seen, snapshot::Tick tick, const record::TypeNames& types,
                 Reporter& reporter);

    snapshot::AgreedSizes agreed_;
    std::vector<snapshot::AgreedSizes> candidates_; ///< each explains what was seen
    std::array<std::uint32_t, std::tuple_size_v<snapshot::AgreedSizes>> confirmed_{};
    NumberedTypes told_;
    std::uint32_t misfits_ = 0; ///< in a row that nothing explained
};

} // namespace tw::inspect
