#pragma once

#include "proxy/demo/demo_encoder.h"
#include "proxy/inspect/inspector.h"
#include "proxy/record/records.h"
#include "snapshot/item.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::demo {

/// All errors, as X(name, sentence). The sentence is written after the file's name.
#define TW_DEMO_ERRORS(X)                                                                          \
    X(none, "nothing is wrong")                                                                    \
    X(no_demo, "is not a demo")                                                                    \
    X(version_unsupported, "is a demo of a version other than 3 to 6")                             \
    X(header_cut, "ends inside the header of a demo")                                              \
    X(map_size_invalid, "claims a map of an impossible size")                                      \
    X(map_cut, "ends inside its map")                                                              \
    X(chunk_cut, "ends inside a chunk")                                                            \
    X(tick_before_first, "has a relative tick before an absolute one")                             \
    X(tick_out_of_range, "has a tick that no demo player accepts")                                 \
    X(payload_undecodable, "has a chunk that cannot be decompressed")                              \
    X(payload_too_long, "has a chunk of more than 64 KiB")                                         \
    X(payload_ints_cut, "has a chunk that ends inside an integer")

/// Why a demo, or the rest of a demo, cannot be read; see `demo_error_info`.
enum class DemoErrc : std::uint8_t {
#define TW_ENUMERATOR(name, sentence) name,
    TW_DEMO_ERRORS(TW_ENUMERATOR)
#undef TW_ENUMERATOR
};

struct DemoError {
    DemoErrc code = DemoErrc::none;
    std::size_t offset = 0; ///< bytes from the start of the file

    friend bool operator==(const DemoError&, const DemoError&) = default;
};

template <typename T>
using DemoResult = tl::expected<T, DemoError>;

struct DemoErrorInfo {
    DemoErrc code;
    std::string_view name;     ///< stable identifier, snake_case
    std::string_view sentence; ///< explanation, to be written after the file's name
};

inline constexpr std::array kDemoErrorTable{
#define TW_ROW(name, sentence) DemoErrorInfo{DemoErrc::name, #name, sentence},
    TW_DEMO_ERRORS(TW_ROW)
#undef TW_ROW
};

[[nodiscard]] constexpr const DemoErrorInfo& demo_error_info(DemoErrc code) {
    return kDemoErrorTable[static_cast<std::size_t>(code)];
}

/// Returns true if the error means that the demo was truncated, for example because its recorder
/// was killed. Other errors mean that the demo is damaged.
[[nodiscard]] constexpr bool is_truncation(DemoErrc code) {
    return code == DemoErrc::chunk_cut || code == DemoErrc::map_cut;
}

/// Returns true if a file that starts with these bytes is a demo, perhaps a damaged one.
[[nodiscard]] bool looks_like_demo(std::span<const std::byte> begin);

/// A demo's header and the positions of its parts.
struct DemoParts {
    DemoHeader header;
    std::size_t map_at = 0;              ///< position of the map in the file
    std::span<const std::byte> map{};    ///< empty if the demo has no map
    std::span<const std::byte> chunks{}; ///< the bytes after the map
    std::size_t chunks_at = 0;
};

/// Reads the header of versions 3 to 6. A text ends at its NUL, or at the end of its field. If a
/// demo of version 6 lacks the extension, the map follows the header directly; DDNet reads such
/// demos, too.
///
/// Errors: no_demo, version_unsupported, header_cut, map_size_invalid, map_cut.
/// Source: DEMO.md.
[[nodiscard]] DemoResult<DemoParts> decode_demo_parts(std::span<const std::byte> file);

/// Converts the timestamp of a header to nanoseconds since 1970, as if it were UTC. Returns nullopt
/// if the timestamp is invalid.
[[nodiscard]] std::optional<std::int64_t> parse_demo_time(std::string_view timestamp);

struct DemoChunk {
    enum class Kind : std::uint8_t {
        tick,     ///< the chunks that follow belong to `tick`
        snapshot, ///< a full snapshot
        delta,    ///< a delta to the previous snapshot in the file
        message,
        other, ///< an unused type, which demo players decompress and ignore
    };

    Kind kind = Kind::other;
    bool keyframe = false;           ///< the chunk is a tick, and a full snapshot follows it
    snapshot::Tick tick = 0;         ///< only for `Kind::tick`: the tick
    std::size_t offset = 0;          ///< position of the chunk's first byte in the file
    std::span<const std::byte> data; ///< compressed data
};

class DemoChunkReader {
  public:
    /// `at`: position of `chunks` in the file, for the offsets of chunks and errors.
    DemoChunkReader(std::span<const std::byte> chunks, int version, std::size_t at)
        : chunks_{chunks}, version_{version}, at_{at} {}

    /// Returns the next chunk; nullopt at the end or after an error (see error()).
    /// Errors: chunk_cut, tick_before_first, tick_out_of_range.
    [[nodiscard]] std::optional<DemoChunk> next_chunk();

    [[nodiscard]] DemoError error() const { return error_; }

    [[nodiscard]] bool has_failed() const { return error_.code != DemoErrc::none; }

  private:
    [[nodiscard]] std::optional<DemoChunk> read_tick_chunk(std::uint8_t first);
    [[nodiscard]] std::optional<DemoChunk> read_data_chunk(std::uint8_t first);
    [[nodiscard]] std::optional<DemoChunk> fail(DemoErrc code);

    [[nodiscard]] std::uint8_t read_u8();

    [[nodiscard]] std::size_t bytes_left() const { return chunks_.size() - used_; }

    std::span<const std::byte> chunks_;
    int version_;
    std::size_t at_;
    std::size_t used_ = 0;
    std::size_t begin_ = 0; ///< start of the current chunk
    std::optional<snapshot::Tick> tick_;
    DemoError error_;
};

/// Decompresses the data of chunks. Use one object for all chunks, to reuse the memory.
class DemoChunkDecoder {
  public:
    DemoChunkDecoder();

    /// Returns the varints of a chunk; empty if the chunk is empty. The varints of a delta have the
    /// same format as a delta's body on the network.
    /// Errors: payload_undecodable, payload_too_long.
    [[nodiscard]] DemoResult<std::span<const std::byte>> decompress_varints(const DemoChunk& chunk);
    /// Returns the decoded ints of a chunk.
    /// Errors: those of decompress_varints(), and payload_ints_cut.
    [[nodiscard]] DemoResult<std::span<const std::int32_t>> decode_ints(const DemoChunk& chunk);
    /// Returns the message in a chunk, followed by up to three zeros.
    /// Errors: those of decode_ints().
    [[nodiscard]] DemoResult<std::span<const std::byte>> decode_message(const DemoChunk& chunk);

  private:
    std::vector<std::byte> bytes_;
    std::vector<std::int32_t> ints_;
    std::vector<std::byte> message_;
};

struct DemoSnapshotResult {
    /// Why the snapshot is invalid; empty if it is valid. Demo players skip invalid snapshots.
    std::string_view error{};
    std::size_t index = 0; ///< index of the wrong int
    /// Number of items with the key of an earlier item. Demo players show such items, too.
    std::size_t duplicates = 0;
};

/// Reads a full snapshot in the layout of demos: size of the items in bytes, number of items,
/// offsets of the items, items. The items in `out` are sorted by key. If several items have the
/// same key, the first one is kept. After an error, `out` is empty.
/// Source: DEMO.md.
[[nodiscard]] DemoSnapshotResult decode_demo_snapshot(std::span<const std::int32_t> ints,
                                                      snapshot::Snapshot& out);

/// A demo file in memory. Data that is appended to the file later is not read.
class DemoFile {
  public:
    /// Returns whether the file starts with a demo header. Returns false for standard input ("-"),
    /// pipes and unreadable files. Opening an unreadable file as a capture will report its error.
    [[nodiscard]] static bool is_demo(const std::string& path);

    /// The size of the largest demo that is read: more than a day of a full server.
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 30U;

    /// Reads the file.
    /// Errors: std::runtime_error.
    explicit DemoFile(const std::string& path);

    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  private:
    // The file is not mapped into memory: truncating a mapped file would kill the reading process.
    std::vector<std::byte> bytes_;
};

/// The time range of a demo, and the error that ended reading.
struct DemoReadResult {
    record::Timestamp first = 0;
    record::Timestamp last = 0;
    /// Why the demo could not be read to the end; `none` if it was read completely.
    DemoError error{};
};

/// Inspects the map, snapshots and messages of a demo as one session. Times count from the demo's
/// timestamp. If the demo is damaged, inspects the readable part, then reports the error as a
/// finding.
[[nodiscard]] DemoReadResult inspect_demo(const DemoParts& demo, const std::string& name,
                                          inspect::Inspector& inspector);

} // namespace tw::demo
