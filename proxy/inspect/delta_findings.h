#pragma once

#include "proxy/inspect/mismatch.h"
#include "proxy/inspect/reporter.h"
#include "snapshot/delta.h"
#include "snapshot/error.h"
#include "snapshot/parts.h"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What is wrong with a delta, and where: the item, the part and the offset in it.
namespace tw::inspect {

/// The item as findings name it; without a name while its descriptor is missing.
[[nodiscard]] record::FindingItem name_item(const record::TypeNames& types, snapshot::ItemKey key);

/// A delta that cannot be decoded or applied; points into the body.
[[nodiscard]] record::FindingRecord decode_finding(const snapshot::DecodeError& error,
                                                   std::span<const std::byte> body,
                                                   const record::TypeNames& types);

/// Adds where in a body an int is: part, offset and the part's bytes.
void point_at_int(record::FindingRecord& finding, std::span<const std::byte> body,
                  std::size_t int_index);

/// The likeliest few of what a finding may be about, and their names.
class Candidates {
  public:
    /// More are only counted.
    static constexpr std::size_t kMaxListed = 5;

    /// The likeliest first.
    Candidates(std::span<const Suspects::Suspect> values, const record::TypeNames& types);
    /// Of a cause that is not known.
    Candidates(const MismatchCause& cause, const record::TypeNames& types);

    Candidates(const Candidates&) = delete;
    Candidates& operator=(const Candidates&) = delete;
    Candidates(Candidates&&) = delete;
    Candidates& operator=(Candidates&&) = delete;
    ~Candidates() = default;

    /// Valid while this is; nothing if there are none.
    [[nodiscard]] std::optional<record::CandidateList> list() const;

  private:
    std::size_t count_;
    std::array<std::string, kMaxListed> fields_;
    std::vector<record::Candidate> listed_;
};

/// A delta whose result has another checksum; points into its body where the cause is known.
/// Candidates are for the caller to add.
[[nodiscard]] record::FindingRecord checksum_finding(const Mismatch& mismatch,
                                                     const MismatchCause& cause);

void report_warnings(const snapshot::AssembledDelta& delta, const snapshot::DeltaWarnings& warnings,
                     const record::TypeNames& types, Reporter& reporter);

/// Counts and reports the deltas whose missing parts will not come any more.
void report_lost(std::span<const snapshot::LostDelta> lost, Reporter& reporter);

} // namespace tw::inspect
