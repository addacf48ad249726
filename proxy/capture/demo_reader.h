#pragma once

#include "proxy/inspect/inspector.h"
#include "proxy/record/records.h"
#include "proxy/sink/demo_encoder.h"
#include "snapshot/item.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::capture {

/// Why a demo cannot be read, or no further. A closed set; `demo_error_info` explains each.
enum class DemoErrc : std::uint8_t {
    none,
    no_demo,             ///< does not begin as demos do
    version_unsupported, ///< outside 3 to 6
    header_cut,          ///< ends inside its header
    map_size_invalid,    ///< a map larger than any, or a negative size
    map_cut,             ///< ends inside its map
    chunk_cut,           ///< ends inside a chunk
    tick_before_first,   ///< a step before there is a tick to step from
    tick_out_of_range,   ///< a tick that no player takes
    payload_undecodable, ///< a chunk whose compressed data ends before its end symbol
    payload_too_long,    ///< a chunk that decompresses to more than a player has room for
    payload_ints_cut,    ///< a chunk whose last integer is cut
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
    std::string_view sentence; ///< follows the file's name
};

/// The table of all errors in the order of the enum.
[[nodiscard]] std::span<const DemoErrorInfo> demo_error_table();
[[nodiscard]] const DemoErrorInfo& demo_error_info(DemoErrc code);

/// Whether a demo that ends so was cut, as one is whose recorder was killed; else it is damaged.
[[nodiscard]] constexpr bool is_cut(DemoErrc code) {
    return code == DemoErrc::chunk_cut || code == DemoErrc::map_cut;
}

/// Whether a file that begins so is meant to be a demo.
[[nodiscard]] bool looks_like_demo(std::span<const std::byte> begin);

/// A demo's header, and where its parts stand.
struct DemoHead {
    sink::demo::Header header;
    std::size_t map_at = 0;              ///< the map's first byte
    std::span<const std::byte> map{};    ///< empty: the demo has none
    std::span<const std::byte> chunks{}; ///< all that follows
    std::size_t chunks_at = 0;
};

/// Reads the header of versions 3 to 6. Texts end at their NUL, or with their field. A version 6
/// without its extension is read as DDNet reads it: the map stands in its place.
///
/// Errors:  no_demo, version_unsupported, header_cut, map_size_invalid, map_cut.
/// Source:  DEMO.md; demo sheet, section 2.
[[nodiscard]] DemoResult<DemoHead> decode_demo_head(std::span<const std::byte> file);

/// Nanoseconds since 1970 of a header's timestamp, taken for UTC; nothing when it is none.
[[nodiscard]] std::optional<std::int64_t> demo_time(std::string_view timestamp);

/// One chunk of a demo.
struct DemoChunk {
    enum class Kind : std::uint8_t {
        tick,     ///< what follows belongs to `tick`
        snapshot, ///< in full
        delta,    ///< to the snapshot before it in the file
        message,
        other, ///< of a type nobody uses; players unpack it and show nothing of it
    };

    Kind kind = Kind::other;
    bool keyframe = false;           ///< of a tick
    snapshot::Tick tick = 0;         ///< of a tick
    std::size_t offset = 0;          ///< of its first byte in the file
    std::span<const std::byte> data; ///< compressed
};

/// Cuts a demo into its chunks, front to back.
class DemoChunks {
  public:
    /// `at`: where `chunks` begin in the file, for the offsets of errors.
    DemoChunks(std::span<const std::byte> chunks, int version, std::size_t at)
        : chunks_{chunks}, version_{version}, at_{at} {}

    /// Nothing at the end, and at an error; `error` tells them apart.
    /// Errors: chunk_cut, tick_before_first, tick_out_of_range; they last.
    [[nodiscard]] std::optional<DemoChunk> next();

    [[nodiscard]] DemoError error() const { return error_; }

    [[nodiscard]] bool failed() const { return error_.code != DemoErrc::none; }

  private:
    [[nodiscard]] std::optional<DemoChunk> next_tick(std::uint8_t first);
    [[nodiscard]] std::optional<DemoChunk> next_data(std::uint8_t first);
    [[nodiscard]] std::optional<DemoChunk> fail(DemoErrc code);

    [[nodiscard]] std::uint8_t u8();

    [[nodiscard]] std::size_t left() const { return chunks_.size() - used_; }

    std::span<const std::byte> chunks_;
    int version_;
    std::size_t at_;
    std::size_t used_ = 0;
    std::size_t begin_ = 0; ///< of the chunk at hand
    std::optional<snapshot::Tick> tick_;
    DemoError error_;
};

/// Unpacks what chunks hold; its room is used again and again.
class DemoPayload {
  public:
    DemoPayload();

    /// The varints that a chunk holds: of a delta its body, as on the network. None of a chunk
    /// without a byte.
    /// Errors: payload_undecodable, payload_too_long.
    [[nodiscard]] DemoResult<std::span<const std::byte>> varints(const DemoChunk& chunk);
    /// The ints behind them. Errors: the same, and payload_ints_cut.
    [[nodiscard]] DemoResult<std::span<const std::int32_t>> ints(const DemoChunk& chunk);
    /// The message that a chunk holds, with up to three zeros behind it. Errors: as ints.
    [[nodiscard]] DemoResult<std::span<const std::byte>> message(const DemoChunk& chunk);

  private:
    std::vector<std::byte> bytes_;
    std::vector<std::int32_t> ints_;
    std::vector<std::byte> message_;
};

/// What is wrong with a full snapshot, and at which of its ints; players skip it.
struct DemoSnapshotError {
    enum class Kind : std::uint8_t { counts, offsets, type };

    Kind kind = Kind::counts;
    std::size_t index = 0;
};

struct DemoSnapshotRead {
    bool ok = true;
    DemoSnapshotError error{};
    std::size_t duplicates =
        0; ///< items under a key that an item before them has; players see these
};

/// Reads a full snapshot as demos hold them: bytes of items, number of items, their offsets, items.
/// They are sorted by key; of several under one key the first counts. On an error `out` is empty.
/// Source: DEMO.md; demo sheet, section 4.
[[nodiscard]] DemoSnapshotRead decode_demo_snapshot(std::span<const std::int32_t> ints,
                                                    snapshot::Snapshot& out);

/// A file's bytes, in memory. A demo that its recorder still writes shows what was
/// written when it was opened.
class DemoFile {
  public:
    /// Whether a file begins as demos do. False also for what cannot be read, and for "-": who reads
    /// it as a capture says why.
    [[nodiscard]] static bool is_demo(const std::string& path);

    /// More than a day of a full server.
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 30U;

    /// Errors: CaptureError.
    explicit DemoFile(const std::string& path);

    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_; // not mapped: who cuts the file must not kill its reader
};

/// How a demo ended, and when.
struct DemoPlayed {
    record::Timestamp first = 0;
    record::Timestamp last = 0;
    DemoError error{}; ///< why it could not be read to its end
};

/// Inspects a demo as one session: its map, snapshots and messages by tick. Times count from its
/// timestamp. What cannot be read any further is a finding, after all that was.
[[nodiscard]] DemoPlayed play_demo(const DemoHead& demo, const std::string& name,
                                   inspect::Inspector& inspector);

} // namespace tw::capture
