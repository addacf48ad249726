#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/json_buffer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tw::sink {

/// What a reader of the next segment has to know: of each open session the lines that were written when
/// it began, and that of its map.
class OpenSessions {
  public:
    /// `line`: with its end, as it was written.
    void remember(const record::Record& record, std::string_view line);
    /// Appends all of it, marked `again`.
    void append_to(JsonBuffer& out) const;
    /// Whether the record is the session's first snapshot with items in this segment, or the
    /// segment's first world.
    [[nodiscard]] bool first_snapshot(const record::Record& record, std::uint32_t segment);

  private:
    /// A relay has no more of them.
    static constexpr std::size_t kMaxSessions = 65536;

    /// Lines without their ends.
    struct Session {
        std::string open;
        std::string established;
        std::string map;
        std::uint32_t whole_in = 0; ///< the last segment with a snapshot that lists all items
    };

    void on_event(const record::SessionRecord& event, std::string_view line);
    /// Null: there are too many.
    [[nodiscard]] Session* find(std::uint32_t number);

    std::map<std::uint32_t, Session> sessions_;
    std::uint32_t worlds_whole_in_ = 0; ///< the last segment with a world that lists all items
};

} // namespace tw::sink
