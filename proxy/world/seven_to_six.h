#pragma once

#include "proxy/record/records.h"
#include "proxy/world/view.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tw::world {

/// Translates the items of 0.7 views to objects of 0.6, for servers with clients of both versions.
/// The table of objects defines the translation (snapshot::MergeSpec::six_name,
/// snapshot::RelationToSix). Ints of a 0.6 object that the 0.7 object lacks are marked in
/// View::missing_ints. Items without a 0.6 object are kept unchanged. If no view has a game_info
/// item, one is made from the 0.7 game_data item.
class SevenToSixTranslator {
  public:
    explicit SevenToSixTranslator(const snapshot::ObjectSet& objects);

    /// Replaces the items of the 0.7 views by translated ones, which are valid until the next call.
    void translate_views(std::vector<View>& views);

    /// Returns a bit mask of the ints of a 0.6 type whose values must be equal in the 0.6 and 0.7
    /// views of a tick.
    [[nodiscard]] static std::uint32_t comparable_int_mask(std::uint16_t type);

  private:
    /// The index of an int in a 0.7 item and in the corresponding 0.6 item.
    struct IntIndexMapping {
        std::uint8_t from = 0;
        std::uint8_t to = 0;
    };

    struct TypeTranslation {
        const snapshot::ObjectSpec* six_object = nullptr; ///< null: the item is kept unchanged
        /// The item is dropped, because another 0.6 item contains the values.
        bool is_dropped = false;
        std::vector<IntIndexMapping> ints{};
    };

    struct TranslatedItem {
        std::vector<std::int32_t> ints;
        std::uint32_t missing_ints = 0;
    };

    [[nodiscard]] static TypeTranslation make_type_translation(const snapshot::ObjectSpec& seven);
    void translate_item(const snapshot::ItemView& item);
    void add_player_name(std::uint16_t client, const record::Roster& roster);
    /// Adds a game_info item made from the view's game_data item. Called if no view of the tick has
    /// a game_info item.
    void add_game_info(const View& view);
    [[nodiscard]] TranslatedItem& find_or_add_item(snapshot::ItemKey key,
                                                   const snapshot::ObjectSpec& six);
    /// Translates one view. `are_all_views_seven`: true if the tick has no 0.6 view.
    void translate_view(View& view, bool are_all_views_seven, ViewCopy& out);

    static constexpr std::size_t kNumSevenTypes = 25; ///< number of 0.7 types

    const snapshot::ObjectSet* objects_;
    std::array<TypeTranslation, kNumSevenTypes> translations_;
    /// Translated items of the current view.
    std::map<snapshot::ItemKey, TranslatedItem> translated_items_;
    std::vector<ViewCopy> translated_views_;
};

} // namespace tw::world
