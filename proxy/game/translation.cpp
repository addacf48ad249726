#include "proxy/game/translation.h"

#include "proxy/record/client_ids.h"
#include "proxy/record/player_name.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace tw::game {

using snapshot::ItemKey;
using snapshot::ItemView;
using snapshot::ObjectSpec;
using snapshot::SnapshotView;

namespace {

/// "⋅ 12 others": servers of 20.0 and later have it at the last but one of a translated view's ids;
/// on others a player may call himself so.
constexpr std::string_view kOthers = "\u22c5 ";
/// A weapon of a player that a view has no id for is drawn as a pickup with this flag.
constexpr std::uint32_t kNoPredictBit = 8;
constexpr std::size_t kPickupFlags = 5;
constexpr std::string_view kSpectatorInfo = "ddnet_spectator_info";

std::string text_of(record::PackedText name) {
    std::array<char, 4 * record::kPlayerNameInts> text{};
    const std::size_t size = snapshot::decode_int_string(name.ints, text);
    return {text.data(), size};
}

/// `use(client, name)` for each that the view names.
template <typename Use>
void each_name(const View& view, const Use& use) {
    if (view.roster != nullptr) {
        view.roster->each([&](std::uint16_t client, const record::Roster::Entry& entry) {
            use(client, text_of({entry.name}));
        });
        return;
    }
    for (const std::uint32_t place : view.places_of(snapshot::kClientInfoType)) {
        const ItemView item = view.at(place);
        use(item.key.id, text_of(record::name_in(item.data)));
    }
}

/// Calls several of one name in a view by a name each: mods let players have the same.
class TellApart {
  public:
    [[nodiscard]] std::string operator()(const std::string& name) {
        const int nth = ++times_[name];
        return nth == 1 ? name : name + '\0' + std::to_string(nth);
    }

  private:
    std::map<std::string, int> times_;
};

/// Who of a translated view's names is no player.
struct Nobodies {
    std::vector<std::uint16_t> ids; ///< rising; the speaker for whom the view has no id is the last
    bool others = false;            ///< the one before the last stands for them

    [[nodiscard]] bool have(std::uint16_t client) const {
        return std::ranges::find(ids, client) != ids.end();
    }
};

Nobodies nobodies_of(const View& view) {
    Nobodies found;
    const std::string_view nameless = view.dialect == snapshot::Dialect::seven ? "" : " ";
    std::vector<std::uint16_t> named_so;
    each_name(view, [&](std::uint16_t client, const std::string& name) {
        if (name == nameless) { // 0.7 cuts blanks in front
            found.ids.push_back(client);
        } else if (name.starts_with(kOthers) && client != view.own) {
            named_so.push_back(client);
        }
    });
    std::ranges::sort(found.ids);
    for (const std::uint16_t client : named_so) {
        if (!found.ids.empty() && found.ids.back() == client + 1) {
            found.ids.insert(std::prev(found.ids.end()), client);
            found.others = true;
        }
    }
    return found;
}

/// The viewer's own id is never translated: it is that of what says whom the viewer watches.
std::optional<std::uint16_t> true_own(const SnapshotView& items, const record::TypeNames& types) {
    std::optional<std::uint16_t> own;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const ItemKey key = items[i].key;
        if (key.type == snapshot::kSpectatorInfoType && !own) {
            own = key.id;
        } else if (key.type >= snapshot::kFirstUuidType) {
            const ObjectSpec* const object = types.object(key.type);
            if (object != nullptr && object->name == kSpectatorInfo) {
                own = key.id;
            }
        }
    }
    return own;
}

bool says_phantom(const ObjectSpec& object, std::span<const std::int32_t> data) {
    return object.merge.family == snapshot::Family::pickup && object.merge.form == 0 &&
           data.size() > kPickupFlags &&
           (static_cast<std::uint32_t>(data[kPickupFlags]) & kNoPredictBit) != 0;
}

/// An item on the way to other ids.
struct Rewriting {
    ItemKey key{};
    std::vector<std::int32_t> data;
    std::uint32_t untold = 0;
};

/// The server's id of a view's; nothing for nobody's.
std::optional<std::uint16_t> find(const ClientIds& ids, std::int32_t id) {
    const auto at = id < 0 ? ids.end() : ids.find(static_cast<std::uint16_t>(id));
    return at == ids.end() ? std::nullopt : at->second;
}

/// False: it is no player's, but what the nameless one carries.
bool rewrite_item(const ObjectSpec& object, const ClientIds& ids, Rewriting& item) {
    if (says_phantom(object, item.data)) {
        return false;
    }
    return record::renumber_clients(object, item.key, item.data, record::ClientIdScope::of_view,
                                    [&](std::int32_t id) { return find(ids, id); });
}

} // namespace

void Translation::learn_names(const View& view) {
    TellApart apart;
    each_name(view, [&](std::uint16_t client, const std::string& name) {
        ids_.learn(apart(name), client);
    });
}

void Translation::learn_own_name(const View& view, const record::TypeNames& types) {
    const auto own = view.own ? true_own(view.items, types) : std::nullopt;
    if (!own) {
        return;
    }
    const Nobodies nobodies = nobodies_of(view);
    TellApart apart;
    each_name(view, [&](std::uint16_t client, const std::string& text) {
        const std::string name = apart(text);
        if (client == view.own && !nobodies.have(client) && !ids_.knows(name) &&
            !ids_.knows(*own)) {
            ids_.learn(name, *own);
        }
    });
}

Translation::Players Translation::players_of(const View& view) {
    const Nobodies nobodies = nobodies_of(view);
    Players players{.ids = {}, .others = nobodies.others};
    TellApart apart;
    each_name(view, [&](std::uint16_t client, const std::string& name) {
        players.ids[client] = nobodies.have(client) ? std::nullopt : ids_.id_of(apart(name));
    });
    return players;
}

void Translation::rewrite(View& view, const Players& players, const record::TypeNames& types,
                          Rewritten& out) const {
    const ClientIds& ids = players.ids;
    std::vector<Rewriting> items;
    for (std::size_t i = 0; i < view.items.size(); ++i) {
        const ItemView item = view.items[i];
        Rewriting rewriting{.key = item.key,
                            .data = {item.data.begin(), item.data.end()},
                            .untold = view.untold.empty() ? 0 : view.untold[i]};
        const ObjectSpec* const object = types.object(item.key.type);
        const bool drawn = object != nullptr && players.others && phantoms_.has(*object, item);
        if (object == nullptr || (!drawn && rewrite_item(*object, ids, rewriting))) {
            items.push_back(std::move(rewriting));
        }
    }
    std::ranges::stable_sort(items, {}, &Rewriting::key);
    out = {};
    for (const Rewriting& item : items) {
        out.items.append(item.key, item.data);
        out.untold.push_back(item.untold);
    }
    if (view.roster != nullptr) {
        view.roster->each([&](std::uint16_t client, const record::Roster::Entry& entry) {
            if (const auto id = find(ids, client)) {
                out.roster.put(*id, entry);
            }
        });
        view.roster = &out.roster;
    }
    view.untold = out.untold;
    view.own = view.own ? find(ids, *view.own) : std::nullopt;
    view.watched = view.watched ? find(ids, *view.watched) : std::nullopt;
    view.items = out.items.view();
}

void Translation::undo(std::vector<View>& views, const record::TypeNames& types) {
    players_.clear();
    if (std::ranges::none_of(views, &View::translated)) {
        return;
    }
    ids_.begin_tick();
    for (const View& view : views) {
        if (!view.translated) {
            learn_names(view);
        }
    }
    for (const View& view : views) {
        if (view.translated) {
            learn_own_name(view, types);
        }
    }
    for (const View& view : views) {
        players_.push_back(view.translated ? players_of(view) : Players{});
    }
    if (std::ranges::any_of(players_, &Players::others)) {
        phantoms_.gather(views, types);
    }
    rewritten_.resize(views.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
        if (views[i].translated) {
            rewrite(views[i], players_[i], types, rewritten_[i]);
        }
    }
}

} // namespace tw::game
