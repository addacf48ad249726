#include "proxy/world/id_restorer.h"

#include "proxy/record/client_ids.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

namespace tw::world {

using record::IdKind;
using snapshot::ItemKey;
using snapshot::ItemView;
using snapshot::ObjectFamily;
using snapshot::ObjectSpec;
using snapshot::SnapshotView;

void PlayerNameIds::reset() {
    names_by_id_.clear();
    names_.clear();
}

void PlayerNameIds::forget_name(NameIterator known) {
    names_by_id_.erase(known->second.id);
    names_.erase(known);
}

bool PlayerNameIds::make_room_for_name() {
    if (names_.size() < kMaxNames) {
        return true;
    }
    const auto oldest = std::ranges::min_element(
        names_, {}, [](const auto& each) { return each.second.last_seen_tick; });
    if (oldest->second.last_seen_tick == current_tick_) {
        return false;
    }
    forget_name(oldest);
    return true;
}

PlayerNameIds::NameIterator PlayerNameIds::add_name(const std::string& name, std::uint16_t id,
                                                    IdKind kind) {
    const auto added =
        names_.emplace(name, NameEntry{.id = id, .kind = kind, .last_seen_tick = current_tick_})
            .first;
    names_by_id_.emplace(id, added);
    return added;
}

PlayerNameIds::NameIterator PlayerNameIds::give_id(const std::string& name, std::uint16_t id,
                                                   IdKind kind) {
    if (const auto holder = names_by_id_.find(id); holder != names_by_id_.end()) {
        forget_name(holder->second);
    }
    if (const auto before = names_.find(name); before != names_.end()) {
        forget_name(before);
    }
    return make_room_for_name() ? add_name(name, id, kind) : names_.end();
}

void PlayerNameIds::learn_id(const std::string& name, std::uint16_t id) {
    if (const auto known = give_id(name, id, IdKind::server); known != names_.end()) {
        known->second.last_learned_tick = current_tick_;
    }
}

bool PlayerNameIds::was_id_learned_for(const std::string& name) const {
    const auto known = names_.find(name);
    return known != names_.end() && known->second.last_learned_tick == current_tick_;
}

bool PlayerNameIds::was_id_learned(std::uint16_t id) const {
    const auto known = names_by_id_.find(id);
    return known != names_by_id_.end() && known->second->second.last_learned_tick == current_tick_;
}

std::optional<std::uint16_t> PlayerNameIds::last_learned_id(const std::string& name) const {
    const auto known = names_.find(name);
    return known != names_.end() && known->second.kind == IdKind::server
               ? std::optional{known->second.id}
               : std::nullopt;
}

void PlayerNameIds::reuse_last_learned_id(const std::string& name) {
    if (last_learned_id(name)) {
        names_.find(name)->second.last_seen_tick = current_tick_;
    }
}

void PlayerNameIds::assign_id_if_free(const std::string& name, std::uint16_t id) {
    const auto known = names_.find(name);
    const auto holder = names_by_id_.find(id);
    if ((known != names_.end() && known->second.last_seen_tick == current_tick_) ||
        (holder != names_by_id_.end() && holder->second->second.last_seen_tick == current_tick_)) {
        return;
    }
    give_id(name, id, IdKind::views);
}

std::uint16_t PlayerNameIds::generate_id() {
    std::uint16_t id = kFirstMadeUpId;
    for (auto at = names_by_id_.lower_bound(id); at != names_by_id_.end() && at->first == id;
         ++at) {
        ++id;
    }
    if (id < kMadeUpIdLimit) {
        return id;
    }
    // All ids below kMadeUpIdLimit are taken. Reuses the id of the name that was not seen for the
    // longest time.
    const auto end = names_by_id_.lower_bound(kMadeUpIdLimit);
    const auto stale = std::min_element(
        names_by_id_.lower_bound(kFirstMadeUpId), end, [](const auto& left, const auto& right) {
            return left.second->second.last_seen_tick < right.second->second.last_seen_tick;
        });
    if (stale != end && stale->second->second.last_seen_tick != current_tick_) {
        id = stale->first;
        forget_name(stale->second);
    }
    return id;
}

std::optional<PlayerNameIds::AssignedId> PlayerNameIds::assign_id(const std::string& name) {
    auto known = names_.find(name);
    if (known == names_.end()) {
        if (!make_room_for_name()) {
            return std::nullopt;
        }
        known = add_name(name, generate_id(), IdKind::twscope);
    }
    known->second.last_seen_tick = current_tick_;
    return AssignedId{.id = known->second.id, .kind = known->second.kind};
}

namespace {

constexpr std::string_view kCharacterName = "character"; // object name in 0.6 and 0.7
constexpr std::size_t kLaserStartIndex = 2;              // offset of x; y follows

/// Returns whether an item of this type may be an unmarked stand-in (see StandInFinder): a pickup
/// or laser in an old form. In the newest form, has_stand_in_flag() recognises stand-ins.
bool is_unmarked_stand_in_type(const ObjectSpec& object) {
    const auto& merge = object.merge;
    return merge.variant != 0 &&
           (merge.family == ObjectFamily::pickup || merge.family == ObjectFamily::laser);
}

/// Returns the index of the tee's position in a stand-in.
std::size_t tee_position_offset(const ObjectSpec& object) {
    return object.merge.family == ObjectFamily::laser ? kLaserStartIndex : 0;
}

/// Finds stand-ins: weapon and laser items that a server sends in place of a player's tee and hook,
/// if the client has no free client id for the player. Stand-ins have item ids of their own.
class StandInFinder {
  public:
    /// Collects the tees' positions and the items of untranslated views from a tick's views. The
    /// ids in the views must not be rewritten yet.
    StandInFinder(std::span<const View> views, const record::ItemTypes& types) {
        for (const View& view : views) {
            for (std::size_t i = 0; i < view.items.size(); ++i) {
                learn_item(view.items[i], view.has_translated_ids, types);
            }
        }
        std::ranges::sort(tee_positions_);
        std::ranges::sort(untranslated_items_);
    }

    /// Returns whether an item of a translated view is a stand-in: the item is at a tee's position,
    /// and no untranslated view contains the item. Precondition: the view lacks players.
    [[nodiscard]] bool is_stand_in(const ObjectSpec& object, const ItemView& item) const {
        const std::size_t at =
            is_unmarked_stand_in_type(object) ? tee_position_offset(object) : item.data.size();
        return at + 1 < item.data.size() &&
               std::ranges::binary_search(tee_positions_,
                                          Position{item.data[at], item.data[at + 1]}) &&
               !std::ranges::binary_search(untranslated_items_,
                                           Entity{object.merge.family, item.key.id});
    }

  private:
    using Position = std::pair<std::int32_t, std::int32_t>;
    using Entity = std::pair<ObjectFamily, std::uint16_t>; ///< family and id

    void learn_item(const ItemView& item, bool translated, const record::ItemTypes& types) {
        const ObjectSpec* const object = types.object(item.key.type);
        if (object != nullptr && object->name == kCharacterName) {
            if (const auto at = snapshot::position_of(*object, item.data)) {
                tee_positions_.emplace_back(item.data[at->x], item.data[at->y]);
            }
        } else if (object != nullptr && !translated && object->merge.family != ObjectFamily::none) {
            untranslated_items_.emplace_back(object->merge.family, item.key.id);
        }
    }

    std::vector<Position> tee_positions_;    ///< positions of the tees in all views, sorted
    std::vector<Entity> untranslated_items_; ///< the items of untranslated views, sorted
};

/// The start of a name such as "⋅ 12 others". If a client supports fewer players than the server
/// has, DDNet 20.0 and later give such a name to the client's second to last id. On other servers,
/// it may be a player's name.
constexpr std::string_view kPlaceholderName = "\u22c5 ";
/// A pickup with this flag may be the weapon of a player for whom the view has no id.
constexpr std::uint32_t kNoPredictBit = 8;
constexpr std::size_t kPickupFlagsIndex = 5;
constexpr std::string_view kSpectatorInfoName = "ddnet_spectator_info";

/// Calls `use(client, name)` for each name in the view. Names are packed.
template <typename Use>
void for_each_name(const View& view, const Use& use) {
    if (view.roster != nullptr) {
        view.roster->for_each_player(
            [&](std::uint16_t client, const record::Roster::KnownPlayer& entry) {
                use(client, record::PackedText{entry.name});
            });
        return;
    }
    for_each_item_of_type(view.items, snapshot::kClientInfoType, [&](const ItemView& item) {
        use(item.key.id, record::player_name_in(item.data));
    });
}

/// The ids in a translated view that do not belong to players.
struct NonPlayers {
    /// In ascending order. Servers use the last id for chat lines of players without an id.
    std::vector<std::uint16_t> ids;
    /// The second to last of `ids` stands for all players without an id.
    bool has_placeholder = false;

    [[nodiscard]] bool contains(std::uint16_t client) const {
        return std::ranges::find(ids, client) != ids.end();
    }
};

NonPlayers find_non_players(const View& view) {
    NonPlayers found;
    // An id that belongs to no player has a blank name. 0.7 strips leading blanks.
    const std::string_view nameless = view.dialect == snapshot::Dialect::seven ? "" : " ";
    std::vector<std::uint16_t> placeholders;
    for_each_name(view, [&](std::uint16_t client, record::PackedText packed) {
        const std::string name = unpack_text(packed);
        if (name == nameless) {
            found.ids.push_back(client);
        } else if (name.starts_with(kPlaceholderName) && client != view.own_client_id) {
            placeholders.push_back(client);
        }
    });
    std::ranges::sort(found.ids);
    for (const std::uint16_t client : placeholders) {
        if (!found.ids.empty() && found.ids.back() == client + 1) {
            found.ids.insert(std::prev(found.ids.end()), client);
            found.has_placeholder = true;
        }
    }
    return found;
}

/// Returns the id that the server itself uses for the viewer's player. It is the id of the
/// spectator_info item, which servers never translate.
std::optional<std::uint16_t> find_server_id_of_viewer(const SnapshotView& items,
                                                      const record::ItemTypes& types) {
    std::optional<std::uint16_t> own;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const ItemKey key = items[i].key;
        if (key.type == snapshot::kSpectatorInfoType && !own) {
            own = key.id;
        } else if (key.type >= snapshot::kFirstUuidType) {
            const ObjectSpec* const object = types.object(key.type);
            if (object != nullptr && object->name == kSpectatorInfoName) {
                own = key.id;
            }
        }
    }
    return own;
}

bool has_stand_in_flag(const ObjectSpec& object, std::span<const std::int32_t> data) {
    return object.merge.family == ObjectFamily::pickup && object.merge.variant == 0 &&
           data.size() > kPickupFlagsIndex &&
           (static_cast<std::uint32_t>(data[kPickupFlagsIndex]) & kNoPredictBit) != 0;
}

/// A copy of an item whose client ids are being replaced.
struct ItemRewrite {
    ItemKey key{};
    std::vector<std::int32_t> data;
    std::uint32_t missing_ints = 0;
};

/// Replaces the client ids in an item. Returns false if the item must be left out, because it
/// belongs to no player or to a player without an id.
bool rewrite_item(const ObjectSpec& object, const ClientIds& ids, ItemRewrite& item) {
    if (has_stand_in_flag(object, item.data)) {
        return false;
    }
    return record::renumber_clients(object, item.key, item.data, record::ClientIdScope::translated,
                                    [&](std::int32_t id) { return find_client_id(ids, id); });
}

/// Replaces the client ids in a view. `stand_ins`: null if the view has no stand-ins. `out`:
/// receives the changed items, to which the view then refers.
void rewrite_view(View& view, const ClientIds& ids, const record::ItemTypes& types,
                  const StandInFinder* stand_ins, ViewCopy& out) {
    std::vector<ItemRewrite> items;
    for (std::size_t i = 0; i < view.items.size(); ++i) {
        const ItemView item = view.items[i];
        ItemRewrite rewritten{.key = item.key,
                              .data = {item.data.begin(), item.data.end()},
                              .missing_ints = view.missing_ints.empty() ? 0 : view.missing_ints[i]};
        const ObjectSpec* const object = types.object(item.key.type);
        const bool is_left_out =
            object != nullptr && ((stand_ins != nullptr && stand_ins->is_stand_in(*object, item)) ||
                                  !rewrite_item(*object, ids, rewritten));
        if (!is_left_out) {
            items.push_back(std::move(rewritten));
        }
    }
    std::ranges::stable_sort(items, {}, &ItemRewrite::key);
    out.clear();
    for (const ItemRewrite& item : items) {
        out.append(item.key, item.data, item.missing_ints);
    }
    if (view.roster != nullptr) {
        view.roster->for_each_player(
            [&](std::uint16_t client, const record::Roster::KnownPlayer& entry) {
                if (const auto id = find_client_id(ids, client)) {
                    out.roster.set_player(*id, entry);
                }
            });
        view.roster = &out.roster;
    }
    out.replace_items_of(view);
    view.own_client_id =
        view.own_client_id ? find_client_id(ids, *view.own_client_id) : std::nullopt;
    view.spectated_client_id =
        view.spectated_client_id ? find_client_id(ids, *view.spectated_client_id) : std::nullopt;
}

} // namespace

std::optional<std::uint16_t> find_client_id(const ClientIds& ids, std::int32_t number) {
    const bool is_id = number >= 0 && number <= snapshot::kMaxItemId;
    const auto at = is_id ? ids.find(static_cast<std::uint16_t>(number)) : ids.end();
    return at == ids.end() ? std::nullopt : at->second;
}

void IdRestorer::reset() {
    name_ids_.reset();
    forget_client_numberings();
    server_id_is_number_ = false;
    id_kinds_.clear();
    renumbered_clients_.clear();
}

void IdRestorer::forget_client_numberings() {
    numberings_.clear();
    numberings_of_views_.clear();
    sessions_present_.clear();
    numbering_bytes_ = 0;
}

std::size_t IdRestorer::memory_bytes_of(const ClientNumbering& numbering) {
    return kNumberingBytes + numbering.source_ints.size() * sizeof(std::int32_t) +
           numbering.players.size() * kPlayerBytes;
}

/// Reads a view's client numbers and names. Returns false if they have not changed since the
/// session's previous view.
bool IdRestorer::read_numbering(const View& view, const record::ItemTypes& types,
                                ClientNumbering& into) {
    const auto server_id = view.has_translated_ids && view.own_client_id
                               ? find_server_id_of_viewer(view.items, types)
                               : std::nullopt;
    constexpr std::int32_t kNone = -1;
    numbering_source_ = {view.has_translated_ids ? 1 : 0,
                         view.own_client_id ? *view.own_client_id : kNone,
                         server_id ? *server_id : kNone};
    for_each_name(view, [this](std::uint16_t client, record::PackedText name) {
        if (client < record::Roster::kMaxPlayers) { // no server has more players
            numbering_source_.push_back(client);
            numbering_source_.push_back(static_cast<std::int32_t>(name.ints.size()));
            numbering_source_.insert(numbering_source_.end(), name.ints.begin(), name.ints.end());
        }
    });
    if (numbering_source_ == into.source_ints) {
        return false;
    }
    numbering_bytes_ -= memory_bytes_of(into);
    const NonPlayers non_players = view.has_translated_ids ? find_non_players(view) : NonPlayers{};
    into = {.source_ints = numbering_source_,
            .is_translated = view.has_translated_ids,
            .own_number = view.own_client_id,
            .server_id = server_id,
            .has_placeholder = non_players.has_placeholder};
    std::map<std::string, int> times; // mods allow equal names, so repeated ones get a suffix
    for_each_name(view, [&](std::uint16_t client, record::PackedText packed) {
        std::string name = unpack_text(packed);
        if (const int nth = ++times[name]; nth > 1) {
            name += '\0' + std::to_string(nth);
        }
        if (non_players.contains(client) || client >= record::Roster::kMaxPlayers) {
            into.ids[client] = std::nullopt;
            return;
        }
        if (client == view.own_client_id) {
            into.own_name = name;
        }
        into.players.push_back({client, std::move(name)});
    });
    numbering_bytes_ += memory_bytes_of(into);
    return true;
}

bool IdRestorer::forget_absent_sessions() {
    return std::erase_if(numberings_, [this](const auto& each) {
               const bool is_missing = each.second.last_tick + kRememberedTicks < num_ticks_;
               numbering_bytes_ -= is_missing ? memory_bytes_of(each.second) : 0;
               return is_missing;
           }) != 0;
}

template <typename Use>
void IdRestorer::for_each_present_session(const Use& use) {
    for (auto& [session, numbering] : numberings_) {
        if (numbering.last_tick == num_ticks_) {
            use(numbering);
        }
    }
}

/// Learns the server's ids from untranslated views, and from translated views that contain the
/// server's id of the viewer's player.
void IdRestorer::learn_ids() {
    for_each_present_session([this](const ClientNumbering& numbering) {
        for (const Player& player : numbering.players) {
            if (!numbering.is_translated) {
                name_ids_.learn_id(player.name, player.number);
            }
        }
    });
    for_each_present_session([this](const ClientNumbering& numbering) {
        if (numbering.server_id && numbering.server_id != numbering.own_number &&
            !numbering.own_name.empty() && !name_ids_.was_id_learned_for(numbering.own_name) &&
            !name_ids_.was_id_learned(*numbering.server_id)) {
            name_ids_.learn_id(numbering.own_name, *numbering.server_id);
        }
    });
    for_each_present_session([this](const ClientNumbering& numbering) {
        for (const Player& player : numbering.players) {
            name_ids_.reuse_last_learned_id(player.name);
        }
    });
}

/// Returns true if no player's number in the view differs from the player's learned id. The
/// numbers may then be the server's ids.
bool IdRestorer::uses_server_ids(const ClientNumbering& numbering) const {
    return std::ranges::all_of(numbering.players, [this](const Player& player) {
        const auto id = name_ids_.last_learned_id(player.name);
        return !id || *id == player.number;
    });
}

/// Gives ids to players without an id in this tick. A player's id is its number in the views that
/// use the server's ids, if these views agree and no other player has this number.
void IdRestorer::assign_ids_from_agreed_numbers() {
    std::map<std::string_view, std::set<std::uint16_t>> numbers;
    std::map<std::uint16_t, std::set<std::string_view>> names;
    for (const auto& [session, numbering] : numberings_) {
        if (numbering.is_translated && uses_server_ids(numbering)) {
            for (const Player& player : numbering.players) {
                numbers[player.name].insert(player.number);
                names[player.number].insert(player.name);
            }
        }
    }
    for_each_present_session([&](const ClientNumbering& numbering) {
        for (const Player& player : numbering.players) {
            const auto agreed = numbers.find(player.name);
            if (agreed != numbers.end() && agreed->second.size() == 1 &&
                names[*agreed->second.begin()].size() == 1) {
                name_ids_.assign_id_if_free(player.name, *agreed->second.begin());
            }
        }
    });
}

/// Gives each player without an id in this tick the number in the view of the player's own client,
/// unless this number is known not to be the server's id.
void IdRestorer::assign_ids_from_own_numbers() {
    std::map<std::uint16_t, std::string_view> owners;
    for (const auto& [session, numbering] : numberings_) {
        if (numbering.server_id && numbering.server_id == numbering.own_number &&
            !numbering.own_name.empty()) {
            const auto [owner, is_new] =
                owners.try_emplace(*numbering.own_number, numbering.own_name);
            server_id_is_number_ =
                server_id_is_number_ || (!is_new && owner->second != numbering.own_name);
        }
    }
    for_each_present_session([this](const ClientNumbering& numbering) {
        if (!server_id_is_number_ && numbering.server_id &&
            numbering.server_id == numbering.own_number && !numbering.own_name.empty()) {
            name_ids_.assign_id_if_free(numbering.own_name, *numbering.own_number);
        }
    });
}

/// Collects the players whose number in a view differs from their id. Uses the latest view of each
/// session, even if the session has no view in this tick.
void IdRestorer::collect_renumbered_clients() {
    renumbered_clients_.clear();
    for (const auto& [session, numbering] : numberings_) {
        for (const auto& [number, id] : numbering.ids) {
            if (id && *id != number) {
                renumbered_clients_.push_back({.session = session, .number = number, .id = *id});
            }
        }
    }
}

void IdRestorer::assign_ids() {
    name_ids_.begin_tick();
    learn_ids();
    assign_ids_from_agreed_numbers();
    assign_ids_from_own_numbers();
    id_kinds_.clear();
    for_each_present_session([this](ClientNumbering& numbering) {
        if (!numbering.is_translated) {
            return;
        }
        for (const Player& player : numbering.players) {
            const auto id = name_ids_.assign_id(player.name);
            numbering.ids[player.number] = id ? std::optional{id->id} : std::nullopt;
            if (id && id->kind != record::IdKind::server) {
                id_kinds_.resize(std::max<std::size_t>(id_kinds_.size(), id->id + 1U));
                id_kinds_[id->id] = id->kind;
            }
        }
    });
    collect_renumbered_clients();
}

void IdRestorer::restore_ids(std::vector<View>& views, const record::ItemTypes& types) {
    numberings_of_views_.clear();
    ++num_ticks_;
    bool changed = forget_absent_sessions();
    if (std::ranges::none_of(views, &View::has_translated_ids)) {
        if (changed) {
            collect_renumbered_clients();
        }
        id_kinds_.clear();
        sessions_present_.clear();
        return;
    }
    for (const View& view : views) {
        const auto [known, is_new] = numberings_.try_emplace(view.session);
        ClientNumbering& numbering = known->second;
        numbering_bytes_ += is_new ? memory_bytes_of(numbering) : 0;
        changed = read_numbering(view, types, numbering) || changed;
        numbering.last_tick = num_ticks_;
        numberings_of_views_.push_back(&numbering);
    }
    if (changed || !std::ranges::equal(views, sessions_present_, {}, &View::session)) {
        sessions_present_.clear();
        std::ranges::transform(views, std::back_inserter(sessions_present_), &View::session);
        assign_ids();
    }
    const bool may_have_stand_ins =
        std::ranges::any_of(numberings_of_views_, &ClientNumbering::has_placeholder);
    const StandInFinder stand_ins{
        may_have_stand_ins ? std::span<const View>{views} : std::span<const View>{}, types};
    rewritten_views_.resize(views.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
        if (views[i].has_translated_ids) {
            const ClientNumbering& numbering = *numberings_of_views_[i];
            rewrite_view(views[i], numbering.ids, types,
                         numbering.has_placeholder ? &stand_ins : nullptr, rewritten_views_[i]);
        }
    }
}

} // namespace tw::world
