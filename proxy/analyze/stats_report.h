#pragma once

#include "proxy/record/records.h"
#include "proxy/record/stats.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tw::analyze {

/// The data of a traffic report: losses, snapshot rates, and bytes by message and item type.
struct StatsReport {
    std::vector<std::string> captures;
    std::uint32_t sessions = 0;
    std::int64_t duration_ns = 0;
    const record::SessionStats* totals = nullptr;
    const record::ByteLedger* ledger = nullptr;
};

[[nodiscard]] std::string stats_table(const StatsReport& report);
/// Returns the report as one JSON object, with keys as in records.
[[nodiscard]] std::string stats_json(const StatsReport& report);

/// A table of the sessions that received snapshots: the player's name, the duration and the number
/// of snapshots.
class PlayerTable final : public record::RecordSink {
  public:
    static constexpr std::size_t kMaxSessions = 1024;

    void on_record(const record::Record& record) override;

    /// Returns the table, or an empty text if no session received a snapshot. `accepted`: as in
    /// totals_text().
    [[nodiscard]] std::string text(std::string_view accepted = "verified") const;

  private:
    struct PlayedSession {
        std::string name{}; ///< the player's last name; until known, the one the client asked for
        record::Timestamp first_time = 0;
        record::Timestamp last_time = 0;
        record::Timestamp name_read_time = 0; ///< time at which the name was read last
        std::uint64_t snapshots = 0;
        std::uint64_t verified = 0;
    };

    std::map<std::uint32_t, PlayedSession> sessions_; ///< at most kMaxSessions, by number
    /// The names that clients asked for when they joined, by session; at most kMaxSessions.
    std::map<std::uint32_t, std::string> requested_names_;
};

/// Returns the totals of captures as text: sessions, snapshots, and a line for each finding that
/// occurred. If other object sizes may explain snapshots that could not be decoded, the last lines
/// recommend `sizes_commands`, the commands that search for such sizes. `accepted`: the word for
/// correct snapshots. Snapshots of demos have no checksum, so they are not "verified".
[[nodiscard]] std::string totals_text(const std::vector<std::string>& captures,
                                      const record::SessionStats& totals, std::uint32_t sessions,
                                      std::string_view sizes_commands,
                                      std::string_view accepted = "verified");

} // namespace tw::analyze
