#pragma once

#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Constants of the demo format (DEMO.md). The reader and the writer share them.
namespace tw::demo {

using namespace std::string_view_literals;

inline constexpr std::string_view kDemoMagic = "TWDEMO\0"sv;
/// The net version in demos of Teeworlds 0.6 and DDNet.
inline constexpr std::string_view kNetVersion = "0.6 626fce9a778df4d4";
/// The net version in demos of Teeworlds 0.7. Such demos must have the format version
/// kSevenDemoVersion, because the demo player of 0.7 accepts no other version.
inline constexpr std::string_view kSevenNetVersion = "0.7 802f1be60a05665f";
inline constexpr int kSevenDemoVersion = 4;

inline constexpr int kOldestVersion = 3;
inline constexpr int kFirstVersionWithMarkers = 4;
/// The first version with kStepBit. The bit marks a tick that is stored as a difference from the
/// previous tick.
inline constexpr int kFirstVersionWithSteps = 5;
inline constexpr int kFirstVersionWithSha256 = 6;

/// The offsets of the fields in the header of a demo, in bytes.
inline constexpr std::size_t kVersionAt = 7;
inline constexpr std::size_t kNetVersionAt = 8;
inline constexpr std::size_t kMapNameAt = 72;
inline constexpr std::size_t kMapSizeAt = 136;
inline constexpr std::size_t kMapCrcAt = 140;
inline constexpr std::size_t kTypeAt = 144;
inline constexpr std::size_t kLengthAt = 152;
inline constexpr std::size_t kTimestampAt = 156;
inline constexpr std::size_t kHeaderBytes = 176; ///< size of the header of version 3
inline constexpr std::size_t kNumMarkersAt = 176;
inline constexpr std::size_t kMarkersAt = 180;
inline constexpr std::size_t kMarkersEnd = 436;
inline constexpr std::size_t kSha256At = 452;
inline constexpr std::size_t kSha256End = 484;

inline constexpr std::size_t kTextBytes = 64; ///< size of the net version and of the map name
inline constexpr std::size_t kTypeBytes = 8;
inline constexpr std::size_t kTimestampBytes = 20;
inline constexpr std::size_t kMaxMarkers = 64;

/// The UUID that precedes the SHA-256: "demoitem-sha256@ddnet.tw".
inline constexpr std::array<std::uint8_t, 16> kSha256Uuid{
    0x6b, 0xe6, 0xda, 0x4a, 0xce, 0xbd, 0x38, 0x0c, 0x9b, 0x5b, 0x12, 0x89, 0xc8, 0x42, 0xd7, 0x80};

/// Bits of a chunk's first byte.
inline constexpr std::uint8_t kTickBit = 0x80;
inline constexpr std::uint8_t kKeyframeBit = 0x40;
/// The lower bits contain the number of ticks since the previous tick. See kFirstVersionWithSteps.
inline constexpr std::uint8_t kStepBit = 0x20;
inline constexpr std::uint8_t kOldStepMask = 0x3f;
inline constexpr std::uint8_t kStepMask = 0x1f;
inline constexpr unsigned kTypeShift = 5;
inline constexpr std::uint8_t kTypeMask = 3;
inline constexpr std::uint8_t kSizeMask = 0x1f;
inline constexpr std::uint8_t kSizeOneByte = 30;
inline constexpr std::uint8_t kSizeTwoBytes = 31;

inline constexpr std::uint8_t kSnapshotChunk = 1;
inline constexpr std::uint8_t kMessageChunk = 2;
inline constexpr std::uint8_t kDeltaChunk = 3;

inline constexpr std::int32_t kMaxTick = 0x6ffffffe; ///< DDNet's demo player rejects later ticks
inline constexpr std::size_t kIntBytes = 4;
inline constexpr std::size_t kMaxPayloadBytes = 65536; ///< decompressed size of a chunk
inline constexpr std::size_t kMaxCompressedBytes = 65535;
inline constexpr std::int32_t kTicksPerSecond = 50;

struct DemoHeader {
    int version = kFirstVersionWithSha256;
    std::string net_version{kNetVersion};
    std::string map_name{};
    std::uint32_t map_size = 0; ///< size in bytes of the map in the demo; 0 if the demo has no map
    std::uint32_t map_crc = 0;
    std::string type{"client"};
    std::int32_t length = 0; ///< in seconds; 0 if the recording was never finished
    std::string timestamp{}; ///< "2026-11-21_16-15-30"; in UTC if twscope wrote it, else local
    std::vector<std::int32_t> markers{};
    std::optional<std::array<std::uint8_t, 32>> sha256{};
};

/// Bytes that overwrite the length or the markers in a demo's header when the demo ends.
struct DemoPatch {
    std::size_t at = 0;
    std::vector<std::byte> bytes;
};

/// Encodes a demo as bytes, which the caller must append to a file in order. After every call, the
/// demo is valid, except for its length and markers, which header_patches() returns.
class DemoEncoder {
  public:
    /// The most ticks between two full snapshots. Demo players can only seek to full snapshots.
    static constexpr snapshot::Tick kKeyframeTicks = 250;
    /// The fewest ticks between two markers.
    static constexpr snapshot::Tick kMarkerTicks = 50;

    explicit DemoEncoder(int version, snapshot::Dialect dialect)
        : version_{version}, sizes_{&snapshot::agreed_sizes(dialect)} {}

    /// Returns the start of a demo: header and map. Texts that are too long are truncated.
    [[nodiscard]] static std::vector<std::byte> encode_start(const DemoHeader& header,
                                                             std::span<const std::byte> map);

    /// Appends a tick and its snapshot to `out`, as a delta if that is possible. Returns false and
    /// appends nothing if the tick is not later than the previous one, or the snapshot is too large
    /// for a demo.
    [[nodiscard]] bool append_snapshot(snapshot::Tick tick, const snapshot::SnapshotView& items,
                                       std::vector<std::byte>& out);
    /// Appends a message of the current tick to `out`. Returns false if the message is too long for
    /// a demo. Precondition: append_snapshot() was called.
    [[nodiscard]] bool append_message(std::span<const std::byte> payload,
                                      std::vector<std::byte>& out);
    /// Adds a marker at the current tick, unless the demo already has 64 markers or the previous
    /// marker is less than kMarkerTicks earlier.
    void add_marker();
    /// Appends a final chunk to `out` if demo players would otherwise not show the final tick.
    void append_final_chunk(std::vector<std::byte>& out);

    /// Returns the parts of the header that are known only when the demo ends.
    [[nodiscard]] std::vector<DemoPatch> header_patches() const;

    [[nodiscard]] std::optional<snapshot::Tick> first_tick() const { return first_; }

    [[nodiscard]] snapshot::Tick last_tick() const { return last_; }

  private:
    void put_tick(snapshot::Tick tick, bool keyframe, std::vector<std::byte>& out) const;
    [[nodiscard]] static bool put_chunk(std::uint8_t type, std::span<const std::byte> varints,
                                        std::vector<std::byte>& out);

    int version_;
    const snapshot::AgreedSizes* sizes_;
    std::optional<snapshot::Tick> first_;
    snapshot::Tick last_ = 0;
    snapshot::Tick last_keyframe_tick_ = 0;
    /// True if the latest tick has no chunk, because its snapshot is unchanged. Demo players do not
    /// show such a tick at the end of a demo.
    bool is_last_tick_unshown_ = false;
    snapshot::Snapshot base_;
    std::vector<std::int32_t> markers_;
};

} // namespace tw::demo
