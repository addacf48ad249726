#include "proxy/world/seven_to_six.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace tw::world {

using record::ItemSightings;
using snapshot::Dialect;
using snapshot::FieldSpec;
using snapshot::ItemKey;
using snapshot::ItemView;
using snapshot::ObjectSpec;
using snapshot::RelationToSix;

namespace {

/// The two ints that describe a pickup in 0.6.
struct PickupKind {
    std::int32_t type = 0;
    std::int32_t subtype = 0;
};

/// The 0.6 kinds of 0.7's pickup types, in the order health, armor, grenade, shotgun, laser, ninja,
/// gun, hammer.
constexpr std::array kPickupKinds{PickupKind{0, 0}, PickupKind{1, 0}, PickupKind{2, 3},
                                  PickupKind{2, 2}, PickupKind{2, 4}, PickupKind{3, 5},
                                  PickupKind{2, 1}, PickupKind{2, 0}};

constexpr std::uint16_t kPickupType = 4;
constexpr std::size_t kPickupKindIndex = 2;
constexpr std::size_t kPickupSubtypeIndex = 3;

constexpr std::size_t kClientIdIndex = 1; ///< index of the client id in a player_info
constexpr std::size_t kPlayerTeamIndex = 2;

constexpr std::size_t kCountryIndex = 7; ///< index of the country in a client_info
constexpr std::int32_t kNoCountry = -1;

constexpr std::size_t kAmmoCountIndex = 18; ///< index of the ammo count in a character
constexpr std::size_t kWeaponIndex = 19;
constexpr std::int32_t kNinjaWeapon = 5;
constexpr std::int32_t kMaxAmmoCount = 10;

/// Keys of the items that describe the game in 0.7 and in 0.6.
constexpr ItemKey kSevenGameDataKey{.type = 6, .id = 0};
constexpr ItemKey kSevenTeamScoresKey{.type = 7, .id = 0};
constexpr ItemKey kSevenFlagsKey{.type = 8, .id = 0};
constexpr ItemKey kGameInfoKey{.type = 6, .id = 0};
constexpr std::size_t kSevenStartTickIndex = 0;
constexpr std::size_t kGameFlagsIndex = 0;
constexpr std::size_t kStateFlagsIndex = 1; ///< index of the state flags, in 0.6 and in 0.7
constexpr std::size_t kStartTickIndex = 2;
constexpr std::int32_t kTeamsBit = 1;
constexpr std::int32_t kFlagsBit = 2;

/// A bit of 0.6's gamestateflag, and the corresponding bits of 0.7.
struct StateFlag {
    std::uint32_t six = 0;
    std::uint32_t seven = 0;
};

/// The flags "game over" (in 0.7 also "round over"), "sudden death" and "paused".
constexpr std::array kStateFlagBits{StateFlag{1, 4 | 8}, StateFlag{2, 2}, StateFlag{4, 16}};

/// Returns the 0.6 object with this name. It is the first object with this name in the table.
const ObjectSpec* find_six_object(std::string_view name) {
    const auto table = snapshot::object_table();
    const auto found = std::ranges::find(table, name, &ObjectSpec::name);
    return found == table.end() ? nullptr : &*found;
}

const FieldSpec* find_field(const ObjectSpec& object, std::string_view name) {
    const auto found = std::ranges::find(object.fields, name, &FieldSpec::name);
    return found == object.fields.end() ? nullptr : &*found;
}

std::uint32_t mask_of_first_ints(std::size_t ints) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < ints; ++i) {
        bits |= ItemSightings::int_bit(i);
    }
    return bits;
}

/// Calls `use(field of 0.7, field of 0.6)` for each pair of corresponding fields.
template <typename Use>
void for_each_field_pair(const ObjectSpec& seven, const ObjectSpec& six, const Use& use) {
    for (const FieldSpec& field : seven.fields) {
        const FieldSpec* const other = field.six_relation == RelationToSix::other_meaning
                                           ? nullptr
                                           : find_field(six, field.name);
        if (other != nullptr && other->count == field.count) {
            use(field, *other);
        }
    }
}

} // namespace

SevenToSixTranslator::SevenToSixTranslator(const snapshot::ObjectSet& objects)
    : objects_{&objects} {
    for (std::uint16_t type = 1; type < kNumSevenTypes; ++type) {
        if (const ObjectSpec* const seven = snapshot::find_object(type, Dialect::seven)) {
            translations_[type] = make_type_translation(*seven);
        }
    }
}

SevenToSixTranslator::TypeTranslation
SevenToSixTranslator::make_type_translation(const ObjectSpec& seven) {
    TypeTranslation translation{.six_object = seven.merge.six_name.empty()
                                                  ? nullptr
                                                  : find_six_object(seven.merge.six_name),
                                .is_dropped = seven.merge.covered_by_six};
    if (translation.six_object == nullptr) {
        return translation;
    }
    for_each_field_pair(
        seven, *translation.six_object, [&](const FieldSpec& from, const FieldSpec& to) {
            for (std::uint8_t i = 0; i < from.count; ++i) {
                translation.ints.push_back({.from = static_cast<std::uint8_t>(from.offset + i),
                                            .to = static_cast<std::uint8_t>(to.offset + i)});
            }
        });
    return translation;
}

std::uint32_t SevenToSixTranslator::comparable_int_mask(std::uint16_t type) {
    static const auto bits = [] {
        std::array<std::uint32_t, kNumSevenTypes> by_type{};
        for (const ObjectSpec& seven : snapshot::object_table()) {
            const ObjectSpec* const six =
                seven.merge.six_name.empty() ? nullptr : find_six_object(seven.merge.six_name);
            if (six != nullptr && six->type < kNumSevenTypes) {
                for_each_field_pair(seven, *six, [&](const FieldSpec& from, const FieldSpec& to) {
                    by_type[six->type] |= from.six_relation == RelationToSix::same
                                              ? ItemSightings::int_bit(to.offset)
                                              : 0;
                });
            }
        }
        return by_type;
    }();
    if (type >= snapshot::kFirstUuidType) {
        return mask_of_first_ints(SIZE_WIDTH); // 0.6 and 0.7 have the same object
    }
    return type < bits.size() ? bits[type] : 0;
}

SevenToSixTranslator::TranslatedItem&
SevenToSixTranslator::find_or_add_item(ItemKey key, const ObjectSpec& six) {
    const auto [at, added] = translated_items_.try_emplace(key);
    if (added) {
        at->second.ints.assign(six.size, 0);
        for (const FieldSpec& field : six.fields) {
            // An empty text is not stored as zeros, because 128 is added to each character.
            if (field.kind == snapshot::FieldKind::int_string) {
                snapshot::encode_int_string(
                    {}, std::span{at->second.ints}.subspan(field.offset, field.count));
            }
        }
        at->second.missing_ints = mask_of_first_ints(six.size);
    }
    return at->second;
}

void SevenToSixTranslator::translate_item(const ItemView& item) {
    const ItemKey key = item.key;
    const TypeTranslation* const translation =
        key.type < kNumSevenTypes ? &translations_[key.type] : nullptr;
    if (translation != nullptr && translation->is_dropped) {
        return;
    }
    if (translation == nullptr || translation->six_object == nullptr) {
        // Items whose key has another meaning in 0.6 are dropped.
        if (key.type >= snapshot::kFirstUuidType || key.type == snapshot::kDescriptorType ||
            objects_->find(key.type, Dialect::six) == nullptr) {
            translated_items_[key] = {.ints = {item.data.begin(), item.data.end()}};
        }
        return;
    }
    TranslatedItem& six = find_or_add_item({.type = translation->six_object->type, .id = key.id},
                                           *translation->six_object);
    for (const IntIndexMapping& told : translation->ints) {
        if (told.from < item.data.size()) {
            six.ints[told.to] = item.data[told.from];
            six.missing_ints &= ~ItemSightings::int_bit(told.to);
        }
    }
    switch (translation->six_object->type) {
    case kPickupType: {
        const auto kind = static_cast<std::size_t>(six.ints[kPickupKindIndex]);
        if (kind < kPickupKinds.size()) {
            six.ints[kPickupKindIndex] = kPickupKinds[kind].type;
            six.ints[kPickupSubtypeIndex] = kPickupKinds[kind].subtype;
            six.missing_ints &= ~ItemSightings::int_bit(kPickupSubtypeIndex);
        } else {
            six.missing_ints |= ItemSightings::int_bit(kPickupKindIndex);
        }
        break;
    }
    case snapshot::kPlayerInfoType:
        six.ints[kClientIdIndex] = key.id;
        six.missing_ints &= ~(ItemSightings::int_bit(0) | ItemSightings::int_bit(kClientIdIndex));
        break;
    case snapshot::kCharacterType:
        // For frozen players and ninjas, the ammo count is the tick at which the state ends.
        if (six.ints[kWeaponIndex] == kNinjaWeapon || six.ints[kAmmoCountIndex] > kMaxAmmoCount) {
            six.ints[kAmmoCountIndex] = 0;
            six.missing_ints |= ItemSightings::int_bit(kAmmoCountIndex);
        }
        break;
    default:
        break;
    }
}

void SevenToSixTranslator::add_player_name(std::uint16_t client, const record::Roster& roster) {
    const auto* const known = roster.find(client);
    static const ObjectSpec* const info =
        snapshot::find_object(snapshot::kClientInfoType, Dialect::six);
    const auto player = translated_items_.find({.type = snapshot::kPlayerInfoType, .id = client});
    if (known == nullptr || info == nullptr || player == translated_items_.end()) {
        return; // the player was announced, but is not in this snapshot
    }
    TranslatedItem& six =
        find_or_add_item({.type = snapshot::kClientInfoType, .id = client}, *info);
    std::ranges::copy(known->name, six.ints.begin());
    six.ints[kCountryIndex] = kNoCountry;
    six.missing_ints &= ~mask_of_first_ints(known->name.size());
    player->second.ints[kPlayerTeamIndex] = known->team;
    player->second.missing_ints &= ~ItemSightings::int_bit(kPlayerTeamIndex);
}

void SevenToSixTranslator::add_game_info(const View& view) {
    static const ObjectSpec* const info = snapshot::find_object(kGameInfoKey.type, Dialect::six);
    const auto at = view.items.find(kSevenGameDataKey);
    if (!at || info == nullptr || view.items[*at].data.size() <= kStateFlagsIndex) {
        return;
    }
    const auto data = view.items[*at].data;
    TranslatedItem& six = find_or_add_item(kGameInfoKey, *info);
    const auto set_int = [&six](std::size_t place, std::int32_t value) {
        six.ints[place] = value;
        six.missing_ints &= ~ItemSightings::int_bit(place);
    };
    // Servers send the game flags to 0.7 clients in a message, which is not available here. The
    // presence of the items with team scores and flags shows these flags, too.
    set_int(kGameFlagsIndex, (view.items.find(kSevenTeamScoresKey) ? kTeamsBit : 0) |
                                 (view.items.find(kSevenFlagsKey) ? kFlagsBit : 0));
    std::uint32_t state = 0;
    for (const StateFlag& flag : kStateFlagBits) {
        state |=
            (static_cast<std::uint32_t>(data[kStateFlagsIndex]) & flag.seven) != 0 ? flag.six : 0;
    }
    set_int(kStateFlagsIndex, static_cast<std::int32_t>(state));
    set_int(kStartTickIndex, data[kSevenStartTickIndex]);
}

void SevenToSixTranslator::translate_view(View& view, bool are_all_views_seven, ViewCopy& out) {
    translated_items_.clear();
    for (std::size_t i = 0; i < view.items.size(); ++i) {
        translate_item(view.items[i]);
    }
    if (are_all_views_seven) {
        add_game_info(view);
    }
    if (view.roster != nullptr) {
        for (std::uint16_t client = 0; client < record::Roster::kMaxClients; ++client) {
            add_player_name(client, *view.roster);
        }
    }
    out.clear();
    for (const auto& [key, item] : translated_items_) {
        out.append(key, item.ints, item.missing_ints);
    }
    out.replace_items_of(view);
    view.roster = nullptr; // the items contain the players now
}

void SevenToSixTranslator::translate_views(std::vector<View>& views) {
    translated_views_.resize(std::max(translated_views_.size(), views.size()));
    const bool are_all_views_seven =
        std::ranges::none_of(views, [](const View& view) { return view.dialect == Dialect::six; });
    for (std::size_t i = 0; i < views.size(); ++i) {
        if (views[i].dialect == Dialect::seven) {
            translate_view(views[i], are_all_views_seven, translated_views_[i]);
        }
    }
}

} // namespace tw::world
