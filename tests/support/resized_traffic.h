#pragma once

#include "snapshot/objects.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/snapshot_messages.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tw::test {

/// The values of the ints that a mod adds to an object.
enum class AddedInts : std::uint8_t {
    zero,       ///< always 0
    small,      ///< 1, 2 or 3, like flags
    item_id,    ///< the item's own id
    arbitrary,  ///< any 32 bits, the same in all snapshots with the item
    tick,       ///< incremented with every snapshot
    flickering, ///< any 32 bits, different in each snapshot
};

inline constexpr std::size_t kAddedInts = 6;

/// A mod: the sizes of its objects, and the values of the ints that it adds.
struct ModSizes {
    snapshot::AgreedSizes sizes = snapshot::kAgreedSizes;
    std::array<AddedInts, std::tuple_size_v<snapshot::AgreedSizes>> added{};

    [[nodiscard]] bool differs(std::uint16_t type) const {
        return type < sizes.size() && sizes[type] != snapshot::kAgreedSizes[type];
    }
};

/// How clients handle the mod's snapshots.
enum class ModClients : std::uint8_t {
    knowing, ///< they know the sizes and acknowledge snapshots as in the capture
    stock,   ///< they drop every snapshot, so the server sends full ones every second
};

/// A capture of 0.6, rewritten as if its servers had other item sizes: each snapshot has the same
/// items, longer or shorter, with the deltas and checksums of such a server. Everything else is as
/// captured. The same mod gives the same bytes.
class ResizedTraffic {
  public:
    explicit ResizedTraffic(const std::string& capture);

    [[nodiscard]] std::vector<TrafficDatagram> traffic_of(const ModSizes& mod,
                                                          ModClients clients) const;

    /// A captured snapshot. `order`: the keys in the order of the delta's updates.
    struct CapturedSnapshot {
        std::uint32_t session = 0;
        snapshot::Tick tick = 0;
        snapshot::Tick base = 0;
        snapshot::Snapshot items;
        std::vector<snapshot::ItemKey> order;
    };

    [[nodiscard]] const std::vector<CapturedSnapshot>& snapshots() const { return snapshots_; }

    /// Returns the number of sessions, by type, in which the type occurs at least `times` times.
    [[nodiscard]] std::map<std::uint16_t, std::size_t> types_seen(std::size_t times) const;

  private:
    class CaptureReader;

    /// A captured datagram. If `rebuilt`, its packet is without snapshots.
    struct CapturedPacket {
        TrafficDatagram datagram;
        bool rebuilt = false;
        bool keep = true; ///< the packet contains something besides snapshots
        std::uint16_t ack = 0;
        std::optional<wire::Token> token{};
        std::optional<wire::Token> header_token{};
        std::size_t first = 0; ///< index in snapshots_ of the first snapshot that it completes
        std::size_t count = 0;
    };

    std::vector<CapturedPacket> sent_;
    std::vector<CapturedSnapshot> snapshots_;
};

/// Returns a mod that changes the sizes of `changed` of the types, each by -1 to +3 ints.
[[nodiscard]] ModSizes random_mod(std::mt19937& random, const std::vector<std::uint16_t>& types,
                                  std::size_t changed);

/// Returns the item as the mod's server sends it at this tick.
[[nodiscard]] std::vector<std::int32_t> resize_item(snapshot::ItemKey key,
                                                    std::vector<std::int32_t> data,
                                                    snapshot::Tick tick, const ModSizes& mod);

/// Returns the body of the delta between two snapshots: updates in this order, then the others.
[[nodiscard]] Bytes ordered_delta(const Items& from, const Items& to,
                                  const std::vector<snapshot::ItemKey>& order,
                                  const snapshot::AgreedSizes& sizes);

} // namespace tw::test
