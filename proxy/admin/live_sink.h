#pragma once

#include "proxy/admin/board.h"
#include "proxy/inspect/inspector.h"
#include "proxy/record/records.h"
#include "snapshot/object_set.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::admin {

/// Takes one worker's records and remembers what the page shows of them.
class LiveSink final : public record::RecordSink {
  public:
    /// `objects` has to outlive it.
    explicit LiveSink(const snapshot::ObjectSet& objects);

    void on_record(const record::Record& record) override;

    /// Everything so far, the sessions with the inspector's totals; forgets sessions it no longer
    /// has.
    void fill(View& view, const inspect::Inspector& inspector);

  private:
    /// What only records say of a session.
    struct Known {
        SessionView view{};
        bool connected = false;       ///< its last event was that
        record::Timestamp looked = 0; ///< when the tee was looked for
    };

    void see(const record::SessionRecord& record);
    void see(const record::MapRecord& record);
    void see(const record::SnapshotRecord& record);
    void see(const record::FindingRecord& record);
    void count_items(const record::SnapshotRecord& record);
    void add_session(View& view, std::uint32_t number, const record::SessionStats& stats) const;
    void count_players(View& view) const;

    const snapshot::ObjectSet* objects_;
    std::unordered_map<std::uint32_t, Known> sessions_;
    std::deque<FindingLine> findings_;
    std::map<std::string, std::uint64_t, std::less<>> server_findings_; ///< by its name
    std::vector<std::uint64_t> items_;                                  ///< by ObjectSet::index_of
    std::vector<std::string_view> item_names_;
    std::uint64_t unknown_items_ = 0;
};

} // namespace tw::admin
