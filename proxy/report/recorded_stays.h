#pragma once

#include "proxy/report/recorded_item.h"
#include "proxy/report/stay_samples.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace tw::report {

/// What a session shows of one map, from the first snapshot to the last.
struct Stay {
    std::int64_t session = 0;
    std::string client; ///< its address; of a demo the file's name; of worlds the server's address
    std::string map;    ///< empty: nobody said
    std::string crc;    ///< of the map
    snapshot::Tick begin = 0;
    snapshot::Tick end = 0; ///< of the last snapshot
    std::uint64_t snapshots = 0;
    StaySamples samples{}; ///< of them
};

/// A snapshot of a stay, rebuilt from what its records say changed.
struct StaySnapshot {
    std::size_t stay = 0;
    snapshot::Tick tick = 0;
    std::shared_ptr<const RecordedItems> items;
};

/// Rebuilds what sessions saw, and the worlds of each server, from the lines of a recording, in their
/// order. Another connection, map or run of the server, a tick behind the last one when the map was
/// announced anew, or far behind it, begins another stay. A snapshot is taken from the first on that
/// lists all items, once for each tick.
class RecordedStays {
  public:
    /// More sessions, and more stays, are left out.
    static constexpr std::size_t kMaxSessions = 65536;

    /// A snapshot that can be compared, if the line makes one.
    [[nodiscard]] std::optional<StaySnapshot> on_line(std::string_view line);

    /// In the order in which they began.
    [[nodiscard]] const std::vector<Stay>& stays() const { return stays_; }

    /// Lines that are no records, of which nobody knows what they said.
    [[nodiscard]] std::uint64_t broken() const { return broken_; }

    /// Snapshots whose items are not known: none were recorded, or what they build on is missing.
    [[nodiscard]] std::uint64_t unusable() const { return unusable_; }

    /// Snapshots of a tick that was there, or a little behind it: they came late, or twice.
    [[nodiscard]] std::uint64_t behind() const { return behind_; }

  private:
    struct Session {
        std::string client;
        std::string map;
        std::string crc;
        std::int64_t run = 0;                       ///< of worlds
        std::shared_ptr<const RecordedItems> items; ///< null: not known
        std::optional<std::size_t> stay;
        snapshot::Tick tick = 0;
        bool announced = false; ///< its map was, since the last snapshot
    };

    /// What sessions show is not known until their next full snapshots. `session`: only of this one.
    void forget_items(std::optional<std::int64_t> session = std::nullopt);
    static void on_session(const boost::json::object& record, Session& session);
    static void on_map(const boost::json::object& record, Session& session);
    void on_world(const boost::json::object& record, Session& session) const;
    [[nodiscard]] std::optional<StaySnapshot> on_snapshot(const boost::json::object& record,
                                                          std::int64_t number, Session& session);

    /// A session's number; of worlds 0, and the server's address.
    using Number = std::pair<std::int64_t, std::string>;

    std::map<Number, Session> sessions_;
    std::vector<Stay> stays_;
    std::uint64_t unusable_ = 0;
    std::uint64_t behind_ = 0;
    std::uint64_t broken_ = 0;
};

} // namespace tw::report
