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

inline constexpr std::uint16_t kDescribed = 0x7fff; ///< numbers of UUID types in these tests

/// Ints of an item, most of them 0: `{index, value}` for the rest.
using SetInts = std::initializer_list<std::pair<std::size_t, std::int32_t>>;
[[nodiscard]] std::vector<std::int32_t> ints(std::size_t size, SetInts set = {});

/// A name as servers pack it, as the front of a client_info.
[[nodiscard]] std::vector<std::int32_t> client_info(std::string_view name);

/// The item that gives a number its UUID.
[[nodiscard]] std::pair<snapshot::ItemKey, std::vector<std::int32_t>>
descriptor(std::uint16_t number, std::string_view object);

/// A character where everybody sees it, with what its player is told.
[[nodiscard]] std::vector<std::int32_t> character(std::int32_t x, std::int32_t y,
                                                  std::int32_t health = 0);

/// Owns what views point at.
class Views {
  public:
    /// A session's snapshot.
    Views& add(std::uint32_t session, std::int32_t version, const Items& items);

    /// The one that says most first.
    [[nodiscard]] std::vector<world::View> list() const;

  private:
    std::deque<snapshot::Snapshot> snapshots_;
    std::vector<world::View> views_;
};

} // namespace tw::test
