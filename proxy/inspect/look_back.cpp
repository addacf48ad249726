#include "proxy/inspect/look_back.h"

#include "proxy/inspect/delta_findings.h"

#include <span>
#include <string>
#include <utility>

namespace tw::inspect {

namespace {

using Suspect = Suspects::Suspect;

/// How many of the likeliest it takes that the wrong one is hardly another.
std::size_t count_rivals(const std::vector<Suspect>& ranked) {
    double sum = 0;
    for (const Suspect& each : ranked) {
        sum += each.probability;
    }
    double left = sum;
    std::size_t count = 0;
    while (count < ranked.size() && left > LookBack::kDoubt * sum) {
        left -= ranked[count++].probability;
    }
    return count;
}

bool is_sure(const std::vector<Suspect>& ranked) {
    return !ranked.empty() && ranked.front().probability > 1 - LookBack::kDoubt;
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
        const Suspect& wrong = ranked.front();
        const std::string field = field_name(types.object(wrong.key.type), wrong.index);
        finding.item = name_item(types, wrong.key);
        finding.field = field;
        finding.value = wrong.got;
        finding.expected = wrong.expected;
        finding.name = "exact";
        point_at_int(finding, body_, wrong.int_index);
        reporter.finding(finding);
        return;
    }
    const Candidates candidates{std::span{ranked}.first(count_rivals(ranked)), types};
    finding.candidates = candidates.list();
    finding.detail = "any of the candidates explains the difference, or several values are wrong";
    reporter.finding(finding);
}

} // namespace tw::inspect
