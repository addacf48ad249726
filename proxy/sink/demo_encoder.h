#pragma once

#include "proxy/sink/demo_format.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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
