#pragma once

#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/message_reporter.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/session.h"
#include "proxy/inspect/snapshot_checks.h"
#include "snapshot/delta.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::inspect {

/// A session that comes without its packets, from a demo: a map, and by tick what its recorder
/// had. It has no checksums, so what can be applied is right.
class Playback {
  public:
    Playback(std::uint32_t number, std::string client, std::string server, const Options& options,
             MapSource& maps, record::RecordSink& sink, snapshot::Dialect dialect);

    void open(record::Timestamp time);
    /// `file`: empty where the demo has none.
    void on_map(const MapAnnouncement& announced, std::vector<std::byte> file);

    /// What follows happened then.
    void on_time(record::Timestamp time) { reporter_.begin(time, wire::Direction::s2c); }

    /// `bytes`: what it took, decompressed.
    void on_full(snapshot::Tick tick, std::size_t bytes, const snapshot::SnapshotView& items);
    /// A delta to the snapshot before it. False: it cannot be used, and that one stays.
    bool on_delta(snapshot::Tick tick, std::span<const std::byte> body);
    /// The tick shows what the one before it showed.
    void on_unchanged(snapshot::Tick tick);
    /// A full snapshot that players skip.
    void on_invalid(snapshot::Tick tick, std::size_t bytes, record::FindingRecord finding);
    /// A message of the server, with up to three zeros behind it.
    void on_message(std::span<const std::byte> payload, wire::DecodedFields& fields);

    void on_finding(const record::FindingRecord& finding) { reporter_.finding(finding); }

    /// Counts it every time, and passes on the first.
    void on_finding_once(const record::FindingRecord& finding) { reporter_.finding_once(finding); }

    void close(record::Timestamp time, std::string_view reason);

    [[nodiscard]] bool is_seven() const { return types_.dialect() == snapshot::Dialect::seven; }

    [[nodiscard]] bool has_snapshot() const { return base_ != snapshot::kNoBase; }

    [[nodiscard]] const record::SessionStats& totals() const { return reporter_.stats; }

  private:
    void emit_session(record::SessionEvent event, std::string_view reason = {});
    [[nodiscard]] record::SnapshotRecord begin_snapshot(snapshot::Tick tick, snapshot::Tick base,
                                                        std::size_t bytes);
    void accept(record::SnapshotRecord& record, const snapshot::SnapshotView& items);
    void learn_players(const snapshot::SnapshotView& items);
    void refuse(record::SnapshotRecord& record, record::FindingRecord finding);

    std::string client_;
    std::string server_;
    Reporter reporter_;
    MessageReporter messages_;
    const wire::MessageSet* described_; ///< by a mod
    MapTracker maps_;
    std::shared_ptr<const record::World> world_;
    record::TypeNames types_;
    record::Roster roster_; ///< of 0.7
    SnapshotChecks checks_;
    snapshot::AgreedSizes sizes_;
    snapshot::Delta delta_;
    snapshot::Snapshot now_;
    snapshot::Snapshot next_;
    snapshot::Tick base_ = snapshot::kNoBase; ///< tick of `now_`; none yet
    std::uint64_t ordinal_ = 0;
};

} // namespace tw::inspect
