#pragma once

#include "proxy/admin/http_server.h"
#include "proxy/admin/served_file.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::admin {

/// What can be recorded from the page.
enum class RecordingKind : std::uint8_t { capture, demos };

/// A file that was recorded.
struct RecordedFile {
    std::string name{};
    std::uint64_t bytes = 0;
    std::int64_t time_ms = 0; ///< since 1970: when it was last written to
};

/// What the page may record, and have; on the server's thread.
struct RecordingSources {
    /// Switches on or off. Errors: one line that says why it cannot be. None: there is no folder.
    std::function<tl::expected<void, std::string>(RecordingKind kind, bool on)> set{};
    /// The newest first; at most so many as a page can show. None: there is no folder.
    std::function<std::vector<RecordedFile>()> list{};
    /// One of those by its name; null: there is none.
    std::function<std::shared_ptr<const ServedFile>(std::string_view name)> open{};
};

/// GET /api/recordings: what is there.
void show_recordings(const RecordingSources& sources, const Request& request,
                     const Respond& respond);

/// POST /api/recordings?capture=on, or demos=off, and so on.
void switch_recordings(const RecordingSources& sources, const Request& request,
                       const Respond& respond);

/// GET /api/recording?name=NAME: the file.
void send_recording(const RecordingSources& sources, const Request& request,
                    const Respond& respond);

} // namespace tw::admin
