#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// What the segments of a recording are called: `FOLDER/NAME-20261121T161530Z-0001.jsonl.zst`, after
/// the time at which each begins (UTC) and its number, which is their order.
struct SegmentNames {
    std::string folder; ///< without a slash at its end
    std::string name;
    std::string suffix; ///< ".jsonl.zst"

    [[nodiscard]] std::string path(std::int64_t utc, std::uint64_t number) const;
};

[[nodiscard]] inline bool is_capture_suffix(std::string_view suffix) {
    return suffix.starts_with(".pcapng");
}

/// A segment that is there.
struct Segment {
    std::string file;   ///< in its folder
    std::string name;   ///< of the recording that it belongs to
    std::string suffix; ///< ".jsonl.zst"
    std::uint64_t number = 0;
    std::int64_t begun = 0; ///< seconds since 1970-01-01 UTC, by the clock of its time

    /// Of a capture, and not of records.
    [[nodiscard]] bool is_capture() const { return is_capture_suffix(suffix); }
};

/// Reads a name; nothing when a file of this name is no segment.
[[nodiscard]] std::optional<Segment> parse_segment(std::string_view file);

/// The segments of a folder, recording by recording, in the order in which they were begun; of one
/// recording, where `names` says which, compressed or not. A folder that cannot be read has none.
[[nodiscard]] std::vector<Segment> segments_in(const std::string& folder,
                                               const SegmentNames* names = nullptr);

} // namespace tw::sink
