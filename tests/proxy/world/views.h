#pragma once

#include "proxy/world/view.h"
#include "snapshot/snapshot.h"
#include "tests/support/snapshot_messages.h"

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace tw::test {

inline constexpr std::uint16_t kPickup = 4;
inline constexpr std::uint16_t kCharacter = snapshot::kCharacterType;
inline constexpr std::uint16_t kPlayerInfo = snapshot::kPlayerInfoType;
inline constexpr std::uint16_t kClientInfo = snapshot::kClientInfoType;
inline constexpr std::uint16_t kUuidType = 0x7fff; ///< the first UUID type of a snapshot

/// The ints of an item that are not 0, as `{index, value}`.
using IndexedInts = std::initializer_list<std::pair<std::size_t, std::int32_t>>;
[[nodiscard]] Ints make_ints(std::size_t size, IndexedInts set = {});

/// Returns the ints of a client_info with this name.
[[nodiscard]] Ints client_info(std::string_view name);

/// Returns a character that everybody sees, including the ints for its own player.
[[nodiscard]] Ints character(std::int32_t x, std::int32_t y, std::int32_t health = 0);

/// Owns views and the data that they point at.
class Views {
  public:
    /// Adds a session's snapshot.
    Views& add_view(std::uint32_t session, std::int32_t version, const Items& items);

    /// Returns the views; the one with most information comes first.
    [[nodiscard]] std::vector<world::View> sorted_views() const;

  private:
    std::deque<snapshot::Snapshot> snapshots_;
    std::vector<world::View> views_;
};

} // namespace tw::test
