#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/record/world.h"
#include "snapshot/delta.h"
#include "snapshot/snapshot.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tw::inspect {

/// Looks back at a refused snapshot when the next right one is there: the wrong value is the one
/// that does not lie between before and after, and would if the checksum's error were taken from it.
class LookBack {
  public:
    /// A snapshot that was rebuilt and has another checksum.
    struct Refused {
        snapshot::Tick tick = 0;
        const snapshot::Delta* delta = nullptr;
        snapshot::SnapshotView result;
        snapshot::SnapshotView before; ///< the last right one
        snapshot::Tick before_tick = 0;
        std::int32_t wanted = 0;
        std::int32_t got = 0;
    };

    /// Keeps what is needed of it, in the place of an older one.
    void on_refused(const Refused& refused);

    [[nodiscard]] bool waits() const { return !values_.empty(); }

    /// The next right snapshot is here.
    void on_right(snapshot::Tick tick, const snapshot::SnapshotView& right,
                  const record::TypeNames& types, Reporter& reporter);

  private:
    /// One int that the refused delta set.
    struct Value {
        snapshot::ItemKey key;
        std::uint32_t index = 0; ///< in the item
        std::int32_t got = 0;
        std::optional<std::int32_t> before{};
    };

    /// A value that would explain the difference of the checksums.
    struct Suspect {
        const Value* value = nullptr;
        std::int32_t mended = 0;
        double gain = 0; ///< how much better what it must have been follows, in bits
    };

    [[nodiscard]] std::vector<Suspect> suspects(snapshot::Tick tick,
                                                const snapshot::SnapshotView& right,
                                                const record::TypeNames& types) const;

    snapshot::Tick tick_ = 0;
    snapshot::Tick before_tick_ = 0;
    std::int32_t excess_ = 0;
    std::int32_t wanted_ = 0;
    std::int32_t got_ = 0;
    std::vector<Value> values_;
};

/// An int of an item as its object names it: "x", "name[2]" where a field has several, "int_4" where
/// nobody knows.
[[nodiscard]] std::string field_name(const snapshot::ObjectSpec* object, std::size_t index);

} // namespace tw::inspect
