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

/// The demo format, as DEMO.md describes it: what its reader and its writer both go by.
namespace tw::sink::demo {

using namespace std::string_view_literals;

inline constexpr std::string_view kMagic = "TWDEMO\0"sv;
/// What a demo of Teeworlds 0.6 and of DDNet says it speaks.
inline constexpr std::string_view kNetVersion = "0.6 626fce9a778df4d4";
/// One of Teeworlds 0.7; its players take no other version than kSevenVersion.
inline constexpr std::string_view kSevenNetVersion = "0.7 802f1be60a05665f";
inline constexpr int kSevenVersion = 4;

inline constexpr int kOldestVersion = 3;
inline constexpr int kMarkersVersion = 4; ///< from here on with a table of markers
inline constexpr int kStepsVersion = 5;   ///< from here on ticks are coded anew
inline constexpr int kSha256Version = 6;  ///< from here on with the map's SHA-256

/// Where the fields of a header stand.
inline constexpr std::size_t kVersionAt = 7;
inline constexpr std::size_t kNetVersionAt = 8;
inline constexpr std::size_t kMapNameAt = 72;
inline constexpr std::size_t kMapSizeAt = 136;
inline constexpr std::size_t kMapCrcAt = 140;
inline constexpr std::size_t kTypeAt = 144;
inline constexpr std::size_t kLengthAt = 152;
inline constexpr std::size_t kTimestampAt = 156;
inline constexpr std::size_t kHeaderBytes = 176; ///< of version 3
inline constexpr std::size_t kNumMarkersAt = 176;
inline constexpr std::size_t kMarkersAt = 180;
inline constexpr std::size_t kMarkersEnd = 436;
inline constexpr std::size_t kSha256At = 452;
inline constexpr std::size_t kSha256End = 484;

inline constexpr std::size_t kTextBytes = 64; ///< net version and map name
inline constexpr std::size_t kTypeBytes = 8;
inline constexpr std::size_t kTimestampBytes = 20;
inline constexpr std::size_t kMaxMarkers = 64;

/// In front of the SHA-256; "demoitem-sha256@ddnet.tw".
inline constexpr std::array<std::uint8_t, 16> kSha256Uuid{
    0x6b, 0xe6, 0xda, 0x4a, 0xce, 0xbd, 0x38, 0x0c, 0x9b, 0x5b, 0x12, 0x89, 0xc8, 0x42, 0xd7, 0x80};

/// The first byte of a chunk.
inline constexpr std::uint8_t kTickBit = 0x80;
inline constexpr std::uint8_t kKeyframeBit = 0x40;
inline constexpr std::uint8_t kStepBit = 0x20; ///< from kStepsVersion on: the step stands here
inline constexpr std::uint8_t kOldStepMask = 0x3f;
inline constexpr std::uint8_t kStepMask = 0x1f;
inline constexpr unsigned kTypeShift = 5;
inline constexpr std::uint8_t kTypeMask = 3;
inline constexpr std::uint8_t kSizeMask = 0x1f;
inline constexpr std::uint8_t kSizeOneByte = 30;
inline constexpr std::uint8_t kSizeTwoBytes = 31;

inline constexpr std::uint8_t kSnapshot = 1;
inline constexpr std::uint8_t kMessage = 2;
inline constexpr std::uint8_t kDelta = 3;

inline constexpr std::int32_t kMaxTick = 0x6ffffffe; ///< DDNet's player takes no later one
inline constexpr std::size_t kMaxPayload = 65536;    ///< bytes, decompressed
inline constexpr std::size_t kMaxCompressed = 65535;
inline constexpr std::int32_t kTicksPerSecond = 50;

/// What a demo says of itself.
struct Header {
    int version = kSha256Version;
    std::string net_version{kNetVersion};
    std::string map_name{};
    std::uint32_t map_size = 0; ///< of the map in the demo; 0: it has none
    std::uint32_t map_crc = 0;
    std::string type{"client"};
    std::int32_t length = 0; ///< seconds; 0: its recorder never finished
    std::string timestamp{}; ///< "2026-11-21_16-15-30", local time of the recorder
    std::vector<std::int32_t> markers{};
    std::optional<std::array<std::uint8_t, 32>> sha256{};
};

} // namespace tw::sink::demo

namespace tw::sink {

/// What to write over the header once a demo ends: its length and markers.
struct DemoPatch {
    std::size_t at = 0;
    std::vector<std::byte> bytes;
};

/// Makes the bytes of one demo, to be appended in order. A demo is whole after every call, its
/// length and markers apart.
class DemoEncoder {
  public:
    /// A full snapshot comes at least every so many ticks: players seek to these.
    static constexpr snapshot::Tick kKeyframeTicks = 250;
    /// Markers stand at least so far apart.
    static constexpr snapshot::Tick kMarkerTicks = 50;

    explicit DemoEncoder(int version, snapshot::Dialect dialect)
        : version_{version}, sizes_{&snapshot::agreed_sizes(dialect)} {}

    /// The header and the map behind it. Texts that are too long are cut.
    [[nodiscard]] static std::vector<std::byte> head(const demo::Header& header,
                                                     std::span<const std::byte> map);

    /// Appends a tick and what it shows, as a difference where that says it all. False, and nothing
    /// is appended: the tick does not follow the one before, or a demo cannot hold the snapshot.
    [[nodiscard]] bool snapshot(snapshot::Tick tick, const snapshot::SnapshotView& items,
                                std::vector<std::byte>& out);
    /// Appends a message of the tick at hand. False where a demo cannot hold it.
    /// Precondition: there is a tick.
    [[nodiscard]] bool message(std::span<const std::byte> payload, std::vector<std::byte>& out);
    /// A place for people to jump to: the tick at hand. Most 64; the first ones count.
    void mark();
    /// Appends what players need behind the last tick.
    void finish(std::vector<std::byte>& out);

    /// Header fields that are only known at the end.
    [[nodiscard]] std::vector<DemoPatch> patches() const;

    [[nodiscard]] std::optional<snapshot::Tick> first() const { return first_; }

    [[nodiscard]] snapshot::Tick last() const { return last_; }

    [[nodiscard]] std::uint64_t ticks() const { return ticks_; }

  private:
    void put_tick(snapshot::Tick tick, bool keyframe, std::vector<std::byte>& out) const;
    [[nodiscard]] static bool put_chunk(std::uint8_t type, std::span<const std::byte> varints,
                                        std::vector<std::byte>& out);
    void keep(snapshot::Tick tick, const snapshot::SnapshotView& items);

    int version_;
    const snapshot::AgreedSizes* sizes_;
    std::optional<snapshot::Tick> first_;
    snapshot::Tick last_ = 0;
    snapshot::Tick keyframe_ = 0;
    std::uint64_t ticks_ = 0;
    bool unchanged_ = false; ///< the last tick shows what the one before it did
    bool unshown_ = false;   ///< and nothing follows it yet, so that players do not show it
    snapshot::Snapshot base_;
    std::vector<std::int32_t> markers_;
};

} // namespace tw::sink
