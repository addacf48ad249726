#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/record/interface.h"
#include "proxy/web/page_feed.h"
#include "proxy/web/run_state.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::web {

/// A file that is sent as a response.
struct ServedFile {
    base::UniqueFd file;
    std::uint64_t bytes = 0; ///< number of bytes to send; data appended later is not sent
};

/// An error in a text that a user typed.
struct InputError {
    std::string message;    ///< one line
    std::size_t offset = 0; ///< position in the text, in bytes
};

/// A filter of records. Returns true if it accepts the record in a JSON line.
using LineFilter = std::function<bool(std::string_view line)>;

/// The snapshots and records that viewers see.
class ViewerData : public record::InterfaceBase {
  public:
    /// Returns the feed with the workers' data; null if traffic is not inspected.
    [[nodiscard]] virtual PageFeed* page_feed() = 0;
    [[nodiscard]] virtual const snapshot::ObjectSet& objects() const = 0;
    /// Compiles a filter expression of a user.
    [[nodiscard]] virtual tl::expected<LineFilter, InputError>
    make_filter(const std::string& text) const = 0;
    /// Returns the JSON line of a session's snapshot with all items.
    [[nodiscard]] virtual std::string snapshot_line(const InspectedSnapshot& seen,
                                                    const snapshot::SnapshotView& items) const = 0;
};

enum class RecordingKind : std::uint8_t { capture, demos };

/// A capture or demo in a folder for recordings.
struct RecordedFile {
    std::string name{};
    std::uint64_t bytes = 0;
    std::int64_t time_ms = 0; ///< latest modification, in milliseconds since 1970
};

/// The result of a health check.
struct Health {
    bool ok = false;
    std::string text; ///< one line; the reason for a failure
};

/// The data that the page shows, and the actions that it offers. The functions are called on the
/// HTTP server's thread.
class PageData : public ViewerData {
  public:
    [[nodiscard]] virtual RunState state() const = 0;
    /// Returns the state with the sessions of this game server only. May contain sessions of the
    /// server that state() leaves out.
    [[nodiscard]] virtual RunState state_of_server(const std::string& server) const;

    /// Checks whether twscope's processes work. After a failure, twscope must be restarted.
    [[nodiscard]] virtual Health check_liveness() const { return {.ok = true, .text = "ok"}; }

    /// Checks whether players can join and play. Calls `done` with the result, now or later.
    virtual void check_readiness(std::function<void(Health)> done) = 0;
    /// Sets the impairment from a text in the format of relay::parse_impairment.
    /// Errors: one line that says what is wrong with the text.
    [[nodiscard]] virtual tl::expected<void, std::string>
    set_impairment(const std::string& text) = 0;

    /// Writes the flight recorder's datagrams of a session, or of all sessions if `session` is 0.
    /// Returns false if the session does not exist. Precondition: there is a flight recorder.
    [[nodiscard]] virtual bool write_flight_recording(std::uint32_t /*session*/) { return false; }

    /// Starts or stops a recording at a viewer's request. Errors: one line with the reason.
    [[nodiscard]] virtual tl::expected<void, std::string> switch_recording(RecordingKind kind,
                                                                           bool on);

    /// Lists recorded files, the newest first, at most as many as the page shows. Returns nullopt
    /// without a folder for recordings.
    [[nodiscard]] virtual std::optional<std::vector<RecordedFile>> list_recordings() const {
        return std::nullopt;
    }

    /// Opens a recorded file by its name. Returns null if the file does not exist.
    [[nodiscard]] virtual std::shared_ptr<const ServedFile>
    open_recording(std::string_view /*name*/) const {
        return nullptr;
    }

    /// Returns an explanation of the findings about a session's snapshot of this tick; nullopt if
    /// there are no findings.
    [[nodiscard]] virtual std::optional<std::string> explain_finding(std::uint32_t /*session*/,
                                                                     std::int64_t /*tick*/) const {
        return std::nullopt;
    }

    /// Returns the map of a session; `physics` and `file_bytes` are null if it is unknown.
    [[nodiscard]] virtual inspect::MapSearchResult map_of_session(std::uint32_t /*session*/) const {
        return {};
    }

    /// Returns the keys that filters can contain, and their possible values, as JSON.
    [[nodiscard]] virtual std::string filter_keys_json() const = 0;
};

} // namespace tw::web
