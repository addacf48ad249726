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

/// What the ints hold that a mod adds to an object.
enum class AddedInts : std::uint8_t {
    zero,       ///< always 0
    small,      ///< 1, 2, 3: flags and the like
    item_id,    ///< the item's own id
    arbitrary,  ///< any 32 bits; the same as long as the item lives
    tick,       ///< counts up with every snapshot
    flickering, ///< any 32 bits, others in each snapshot
};

inline constexpr std::size_t kAddedInts = 6;

/// A mod: the sizes of its objects, and what it adds to those that are longer than agreed.
struct ModSizes {
    snapshot::AgreedSizes sizes = snapshot::kAgreedSizes;
    std::array<AddedInts, std::tuple_size_v<snapshot::AgreedSizes>> added{};

    [[nodiscard]] bool differs(std::uint16_t type) const {
        return type < sizes.size() && sizes[type] != snapshot::kAgreedSizes[type];
    }
};

/// How clients take the mod's snapshots.
enum class ModClients : std::uint8_t {
    knowing, ///< they know its sizes: deltas build on what the capture's clients acknowledged
    stock,   ///< they drop every snapshot: the server sends a full one every second
};

/// The play of a capture of 0.6, told again by servers with other sizes: each snapshot has the items
/// that it had, longer or shorter; deltas and checksums are those that such a server writes. All
/// else is as captured. The same mod gives the same bytes.
class ResizedTraffic {
  public:
    explicit ResizedTraffic(const std::string& capture);

    [[nodiscard]] std::vector<TrafficDatagram> told_by(const ModSizes& mod,
                                                       ModClients clients) const;

    /// A snapshot as it was captured. `order`: keys in the order in which the delta updates them.
    struct Told {
        std::uint32_t session = 0;
        snapshot::Tick tick = 0;
        snapshot::Tick base = 0;
        snapshot::Snapshot items;
        std::vector<snapshot::ItemKey> order;
    };

    [[nodiscard]] const std::vector<Told>& snapshots() const { return snapshots_; }

    /// Sessions in whose snapshots each type occurs at least `times` times.
    [[nodiscard]] std::map<std::uint16_t, std::size_t> types_seen(std::size_t times) const;

  private:
    class Reading;

    /// A datagram as captured; with `rebuilt`, its packet without its snapshots.
    struct Sent {
        TrafficDatagram datagram;
        bool rebuilt = false;
        bool keep = true; ///< something is left in it without the snapshots
        std::uint16_t ack = 0;
        std::optional<wire::Token> token{};
        std::optional<wire::Token> header_token{};
        std::size_t first = 0; ///< the snapshots that it completes, in snapshots_
        std::size_t count = 0;
    };

    std::vector<Sent> sent_;
    std::vector<Told> snapshots_;
};

/// A mod that changes so many of `types`, each by -1 to +3 ints.
[[nodiscard]] ModSizes random_mod(std::mt19937& random, const std::vector<std::uint16_t>& types,
                                  std::size_t changed);

/// An item as the mod's server has it at this tick.
[[nodiscard]] std::vector<std::int32_t> resized(snapshot::ItemKey key,
                                                std::vector<std::int32_t> data, snapshot::Tick tick,
                                                const ModSizes& mod);

/// The body of the delta between two snapshots, updates in this order and others behind them.
[[nodiscard]] Bytes ordered_delta(const Items& from, const Items& to,
                                  const std::vector<snapshot::ItemKey>& order,
                                  const snapshot::AgreedSizes& sizes);

} // namespace tw::test
