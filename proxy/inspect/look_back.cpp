#include "proxy/inspect/look_back.h"

#include "proxy/inspect/delta_findings.h"

#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace tw::inspect {

namespace {

using Suspect = Suspects::Suspect;

/// The probability that another value than the likeliest is wrong, or several are.
double doubt_of_first(const std::vector<Suspect>& ranked) {
    return 1 - ranked.front().probability;
}

/// The number of the likeliest values that leave no more than `doubt`, of all values' probability, for
/// the rest.
std::size_t count_candidates(const std::vector<Suspect>& ranked, double doubt) {
    const double sum =
        std::accumulate(ranked.begin(), ranked.end(), 0.0, [](double before, const Suspect& each) {
            return before + each.probability;
        });
    double rest = 0;
    std::size_t count = ranked.size();
    while (count > 1 && rest + ranked[count - 1].probability <= doubt * sum) {
        rest += ranked[--count].probability;
    }
    return count;
}

bool is_sure(const std::vector<Suspect>& ranked) {
    return !ranked.empty() && doubt_of_first(ranked) < LookBack::kDoubt;
}

} // namespace

LookBack::LookBack(const Mismatch& mismatch, Suspects suspects)
    : tick_{mismatch.tick}, wanted_{mismatch.wanted}, got_{mismatch.got},
      body_{mismatch.body.begin(), mismatch.body.end()}, suspects_{std::move(suspects)} {}

void LookBack::on_right(snapshot::Tick tick, const snapshot::SnapshotView& right,
                        const snapshot::SnapshotView& previous, const record::TypeNames& types,
                        Reporter& reporter) {
    if (tick <= tick_) {
        return;
    }
    suspects_.add_right(tick, right, previous);
    const auto ranked = suspects_.ranked(types);
    if (is_sure(ranked) || suspects_.num_after() == Course::kMaxPoints) {
        tell(ranked, types, reporter);
        suspects_.clear();
    }
}

void LookBack::finish(const record::TypeNames& types, Reporter& reporter) {
    if (waits() && suspects_.num_after() != 0) {
        tell(suspects_.ranked(types), types, reporter);
    }
    suspects_.clear();
}

void LookBack::tell(const std::vector<Suspect>& ranked, const record::TypeNames& types,
                    Reporter& reporter) const {
    record::FindingRecord finding{.id = record::FindingId::snapshot_explained,
                                  .tick = tick_,
                                  .crc_wanted = wanted_,
                                  .crc_got = got_,
                                  .name = "ambiguous"};
    if (is_sure(ranked)) {
        const bool is_exact = doubt_of_first(ranked) < kExactDoubt;
        const Suspect& wrong = ranked.front();
        const std::string field = field_name(types.object(wrong.key.type), wrong.index);
        finding.item = name_item(types, wrong.key);
        finding.field = field;
        finding.value = wrong.got;
        finding.expected = wrong.expected;
        finding.name = is_exact ? "exact" : "likely";
        point_at_int(finding, body_, wrong.int_index);
        const Candidates candidates{std::span{ranked}.first(count_candidates(ranked, kExactDoubt)),
                                    types};
        if (!is_exact) {
            finding.candidates = candidates.list();
            finding.detail = "the snapshots before and after make it unlikely that another "
                             "candidate, or several values, are wrong";
        }
        reporter.finding(finding);
        return;
    }
    const Candidates candidates{std::span{ranked}.first(count_candidates(ranked, kDoubt)), types};
    finding.candidates = candidates.list();
    finding.detail = "any of the candidates explains the difference, or several values are wrong";
    reporter.finding(finding);
}

} // namespace tw::inspect
