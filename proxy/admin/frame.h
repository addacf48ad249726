#pragma once

#include "snapshot/object_set.h"
#include "snapshot/snapshot.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::admin {

/// One snapshot on the timeline.
struct Bar {
    std::uint32_t session = 0;
    std::int64_t time = 0; ///< nanoseconds since 1970
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    std::size_t bytes = 0; ///< of the delta
    std::int32_t parts = 0;
    std::size_t size = 0; ///< of the snapshot, as the server counts it
    enum class Fate : std::uint8_t { verified, unverified, mismatched } fate = Fate::verified;
};

/// What viewers are told of one moment: an item is [object, id, ints...], where the object is its place
/// in /api/objects, or -1 - type for one that nobody knows. docs/api.md describes it.
struct FrameHead {
    std::uint32_t session = 0; ///< 0: the world of all sessions
    std::uint64_t number = 0;  ///< counts frames of one pace
    std::int64_t time = 0;     ///< nanoseconds since 1970
    snapshot::Tick tick = 0;
};

/// Gives a type's place among the objects.
class ObjectPlaces {
  public:
    explicit ObjectPlaces(const snapshot::ObjectSet& objects) : objects_{&objects} {}

    /// Reads what a snapshot says of UUID types. True: a number stands for another type than before, as
    /// where a server was started again.
    [[nodiscard]] bool learn(const snapshot::SnapshotView& items);

    [[nodiscard]] std::int32_t place(std::uint16_t type) const;

  private:
    struct Known {
        std::uint16_t type = 0;
        std::int32_t place = 0;
    };

    /// As record::TypeNames: servers have at most 64.
    static constexpr std::size_t kMaxTypes = 512;

    const snapshot::ObjectSet* objects_;
    std::vector<Known> uuids_;
};

/// The items of `now` that differ from those of `before`, and the keys that are gone; all of `now` when
/// there is no `before`. Items that only name types are left out.
[[nodiscard]] std::string frame_json(const FrameHead& head, const snapshot::SnapshotView& now,
                                     const std::optional<snapshot::SnapshotView>& before,
                                     std::span<const Bar> bars, const ObjectPlaces& places);

/// Of snapshots that could not be rebuilt, while there is nothing new to show.
[[nodiscard]] std::string bars_json(std::uint32_t session, std::span<const Bar> bars);

} // namespace tw::admin
