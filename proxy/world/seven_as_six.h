#pragma once

#include "proxy/record/records.h"
#include "proxy/world/view.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tw::world {

/// Tells views of 0.7 in the objects of 0.6, where clients of both play on one server. What is one
/// thing in both stands in the table of objects (snapshot::MergeSpec::six, snapshot::InSix). What
/// 0.7 does not tell of it is marked as untold; what 0.6 does not have stays as it is. game_data of
/// 0.7 is told in a game_info where no view of 0.6 has one.
class SevenAsSix {
  public:
    explicit SevenAsSix(const snapshot::ObjectSet& objects);

    /// Replaces the items of the views of 0.7 among those of a tick; they live until the next call.
    void tell(std::vector<View>& views);

    /// Bits of the ints of a type of 0.6 that a server makes the same for clients of 0.7.
    [[nodiscard]] static std::uint32_t comparable(std::uint16_t type);

  private:
    /// An int that is told under another type, at another place.
    struct Told {
        std::uint8_t from = 0;
        std::uint8_t to = 0;
    };

    struct Way {
        const snapshot::ObjectSpec* six = nullptr; ///< null: it stays as it is
        bool left_out = false;                     ///< 0.6 tells it
        std::vector<Told> ints{};
        std::uint32_t told = 0; ///< bits of the ints of 0.6
    };

    /// An item of 0.6 on its way.
    struct Item {
        std::vector<std::int32_t> ints;
        std::uint32_t untold = 0;
    };

    /// A view, told in 0.6.
    struct Retold {
        snapshot::Snapshot items;
        std::vector<std::uint32_t> untold;
    };

    [[nodiscard]] static Way way_of(const snapshot::ObjectSpec& seven);
    void add(const snapshot::ItemView& item);
    void add_name(std::uint16_t client, const record::Roster& roster);
    /// Of the game_data at hand, where no view of the tick has a game_info.
    void add_game_info(const View& view);
    [[nodiscard]] Item& put(snapshot::ItemKey key, const snapshot::ObjectSpec& six);
    /// `alone`: no view of the tick is of 0.6.
    void retell(View& view, bool alone, Retold& out);

    static constexpr std::size_t kTypes = 25; ///< that 0.7 numbers

    const snapshot::ObjectSet* objects_;
    std::array<Way, kTypes> ways_;
    std::map<snapshot::ItemKey, Item> items_; ///< of the view at hand
    std::vector<Retold> retold_;
};

} // namespace tw::world
