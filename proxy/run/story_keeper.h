#pragma once

#include "proxy/admin/board.h"
#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tw::run {

/// Keeps the records around the latest findings about snapshots, from the last right snapshot to
/// the next one, so that the live page can tell their stories. Between findings it only remembers
/// when each session's last right snapshot came.
class StoryKeeper final : public record::RecordSink {
  public:
    /// Accounts that are kept; the oldest goes first.
    static constexpr std::size_t kKept = 16;
    /// Bytes of one account; a snapshot that would exceed them is left out.
    static constexpr std::size_t kMaxBytes = std::size_t{256} << 10U;
    /// An account begins at most so often: whoever sends nonsense must not keep us busy.
    static constexpr record::Timestamp kPause = 500'000'000;

    /// `objects` has to outlive it.
    explicit StoryKeeper(const snapshot::ObjectSet& objects);
    ~StoryKeeper() override;
    StoryKeeper(const StoryKeeper&) = delete;
    StoryKeeper& operator=(const StoryKeeper&) = delete;
    StoryKeeper(StoryKeeper&&) = delete;
    StoryKeeper& operator=(StoryKeeper&&) = delete;

    void on_record(const record::Record& record) override;

    /// Those that are whole, and those under way.
    void fill(admin::View& view) const;

  private:
    /// A session's last right snapshot.
    struct Right {
        record::RecordHead head{};
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// What is known of a finding until the next right snapshot is here.
    struct Telling {
        snapshot::Tick tick = 0;
        std::string before{}; ///< lines of the records, what came before the finding …
        std::string since{};  ///< … and what came with it and behind it
    };

    struct Known {
        std::string session; ///< the line of its last session record
        std::string map;
        std::optional<Right> right{};
        std::unique_ptr<Telling> telling;
    };

    class Lines;

    void see(const record::SessionRecord& record);
    void see(const record::MapRecord& record);
    void see(const record::SnapshotRecord& record);
    void see(const record::FindingRecord& record);
    /// The last right snapshot before the finding, and the next one behind it.
    void tell_around(const record::SnapshotRecord& record, Known& known);
    void end(std::uint32_t session, Known& known);
    static void append(Telling& telling, std::string& to, const std::string& line);
    /// The record's line.
    [[nodiscard]] std::string line_of(const record::Record& record);
    [[nodiscard]] static admin::Account account(std::uint32_t session, const Known& known);

    std::unordered_map<std::uint32_t, Known> sessions_;
    std::deque<admin::Account> accounts_;    ///< oldest first
    std::optional<record::Timestamp> begun_; ///< the last of them
    std::unique_ptr<Lines> lines_;
    sink::JsonLines json_;
};

} // namespace tw::run
