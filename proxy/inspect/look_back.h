#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/inspect/suspects.h"
#include "proxy/record/world.h"
#include "snapshot/snapshot.h"

#include <cstdint>
#include <vector>

namespace tw::inspect {

/// Looks back at a refused snapshot when the next right ones are there: the wrong value is the one
/// that does not follow from what was before and after, and would if the checksum's error were taken
/// from it.
class LookBack {
  public:
    /// A value is named if the probability that another is wrong is below this.
    static constexpr double kDoubt = 0.01;
    /// It is called exact below this, otherwise likely. The probabilities treat values as independent,
    /// which they are not quite: of 74,000 that were named after a flipped bit, 26 were wrong, and
    /// the surest of these had a doubt of 4e-6.
    static constexpr double kExactDoubt = 1e-7;

    LookBack(const Mismatch& mismatch, Suspects suspects);

    [[nodiscard]] bool waits() const { return !suspects_.empty(); }

    /// The next right snapshot is here; `previous`: the last one before it, if there was one.
    void on_right(snapshot::Tick tick, const snapshot::SnapshotView& right,
                  const snapshot::SnapshotView& previous, const record::TypeNames& types,
                  Reporter& reporter);
    /// No other will come: tells what is known.
    void finish(const record::TypeNames& types, Reporter& reporter);

  private:
    void tell(const std::vector<Suspects::Suspect>& ranked, const record::TypeNames& types,
              Reporter& reporter) const;

    snapshot::Tick tick_;
    std::int32_t wanted_;
    std::int32_t got_;
    std::vector<std::byte> body_;
    Suspects suspects_;
};

} // namespace tw::inspect
