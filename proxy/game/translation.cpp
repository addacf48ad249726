#include "proxy/game/translation.h"

#include "proxy/record/client_ids.h"
#include "proxy/record/player_name.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
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

/// The world's id of a view's number; nothing for nobody's.
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

void Translation::reset() {
    ids_.reset();
    forget_views();
    told_is_number_ = false;
    id_kinds_.clear();
    renumbered_.clear();
}

void Translation::forget_views() {
    numberings_.clear();
    current_.clear();
    present_.clear();
    bytes_ = 0;
}

std::size_t Translation::bytes_of(const Numbering& numbering) {
    return kNumberingBytes + numbering.read.size() * sizeof(std::int32_t) +
           numbering.players.size() * kPlayerBytes;
}

/// Reads what a view calls its players, if that changed. Returns whether it did.
bool Translation::read(const View& view, const record::TypeNames& types, Numbering& into) {
    const auto told = view.translated && view.own ? true_own(view.items, types) : std::nullopt;
    constexpr std::int32_t kNone = -1;
    reading_ = {view.translated ? 1 : 0, view.own ? *view.own : kNone, told ? *told : kNone};
    const auto note = [this](std::uint16_t client, std::span<const std::int32_t> name) {
        if (client >= record::Roster::kMaxPlayers) {
            return; // no server has as many
        }
        reading_.push_back(client);
        reading_.push_back(static_cast<std::int32_t>(name.size()));
        reading_.insert(reading_.end(), name.begin(), name.end());
    };
    if (view.roster != nullptr) {
        view.roster->each([&](std::uint16_t client, const record::Roster::Entry& entry) {
            note(client, entry.name);
        });
    } else {
        for (const std::uint32_t place : view.places_of(snapshot::kClientInfoType)) {
            const ItemView item = view.at(place);
            note(item.key.id, record::name_in(item.data).ints);
        }
    }
    if (reading_ == into.read) {
        return false;
    }
    bytes_ -= bytes_of(into);
    const Nobodies nobodies = view.translated ? nobodies_of(view) : Nobodies{};
    into = {.read = reading_,
            .translated = view.translated,
            .own = view.own,
            .told = told,
            .others = nobodies.others};
    TellApart apart;
    each_name(view, [&](std::uint16_t client, const std::string& text) {
        std::string name = apart(text);
        if (nobodies.have(client) || client >= record::Roster::kMaxPlayers) {
            into.ids[client] = std::nullopt;
            return;
        }
        if (client == view.own) {
            into.own_name = name;
        }
        into.players.push_back({client, std::move(name)});
    });
    bytes_ += bytes_of(into);
    return true;
}

bool Translation::forget_missing() {
    return std::erase_if(numberings_, [this](const auto& each) {
               const bool is_missing = each.second.seen + kRemembered < ticks_;
               bytes_ -= is_missing ? bytes_of(each.second) : 0;
               return is_missing;
           }) != 0;
}

template <typename Use>
void Translation::each_present(const Use& use) {
    for (auto& [session, numbering] : numberings_) {
        if (numbering.seen == ticks_) {
            use(session, numbering);
        }
    }
}

/// Learns the server's ids: from views that know all, and from those that were told their player's own.
void Translation::learn() {
    each_present([this](std::uint32_t /*session*/, const Numbering& numbering) {
        for (const Player& player : numbering.players) {
            if (!numbering.translated) {
                ids_.learn(player.name, player.number);
            }
        }
    });
    each_present([this](std::uint32_t /*session*/, const Numbering& numbering) {
        const bool is_told = numbering.told && numbering.told != numbering.own;
        if (is_told && !numbering.own_name.empty() && !ids_.knows(numbering.own_name) &&
            !ids_.knows(*numbering.told)) {
            ids_.learn(numbering.own_name, *numbering.told);
        }
    });
    each_present([this](std::uint32_t /*session*/, const Numbering& numbering) {
        for (const Player& player : numbering.players) {
            ids_.keep_learned(player.name);
        }
    });
}

/// Whether no number of a view is known to be another than the server's.
bool Translation::numbers_as_server(const Numbering& numbering) const {
    return std::ranges::all_of(numbering.players, [this](const Player& player) {
        const auto id = ids_.learned(player.name);
        return !id || *id == player.number;
    });
}

/// Offers each player the number that all views have, and have for nobody else.
void Translation::offer_agreed() {
    std::map<std::string_view, std::set<std::uint16_t>> numbers;
    std::map<std::uint16_t, std::set<std::string_view>> names;
    for (const auto& [session, numbering] : numberings_) {
        if (numbering.translated && numbers_as_server(numbering)) {
            for (const Player& player : numbering.players) {
                numbers[player.name].insert(player.number);
                names[player.number].insert(player.name);
            }
        }
    }
    each_present([&](std::uint32_t /*session*/, const Numbering& numbering) {
        for (const Player& player : numbering.players) {
            const auto agreed = numbers.find(player.name);
            if (agreed != numbers.end() && agreed->second.size() == 1 &&
                names[*agreed->second.begin()].size() == 1) {
                ids_.offer(player.name, *agreed->second.begin());
            }
        }
    });
}

/// Offers each player the number of its own view, unless several have the same.
void Translation::offer_own() {
    std::map<std::uint16_t, std::string_view> owners;
    for (const auto& [session, numbering] : numberings_) {
        if (numbering.told && numbering.told == numbering.own && !numbering.own_name.empty()) {
            const auto [owner, is_new] = owners.try_emplace(*numbering.own, numbering.own_name);
            told_is_number_ = told_is_number_ || (!is_new && owner->second != numbering.own_name);
        }
    }
    each_present([this](std::uint32_t /*session*/, const Numbering& numbering) {
        if (!told_is_number_ && numbering.told && numbering.told == numbering.own &&
            !numbering.own_name.empty()) {
            ids_.offer(numbering.own_name, *numbering.own);
        }
    });
}

/// Of all views that are remembered: one that is missing in a tick has not changed.
void Translation::gather_renumbered() {
    renumbered_.clear();
    for (const auto& [session, numbering] : numberings_) {
        for (const auto& [number, id] : numbering.ids) {
            if (id && *id != number) {
                renumbered_.push_back({.session = session, .number = number, .id = *id});
            }
        }
    }
}

void Translation::assign() {
    ids_.begin_tick();
    learn();
    offer_agreed();
    offer_own();
    id_kinds_.clear();
    each_present([this](std::uint32_t /*session*/, Numbering& numbering) {
        if (!numbering.translated) {
            return;
        }
        for (const Player& player : numbering.players) {
            const auto id = ids_.id_of(player.name);
            numbering.ids[player.number] = id ? std::optional{id->id} : std::nullopt;
            if (id && id->kind != record::IdKind::server) {
                id_kinds_.resize(std::max<std::size_t>(id_kinds_.size(), id->id + 1U));
                id_kinds_[id->id] = id->kind;
            }
        }
    });
    gather_renumbered();
}

void Translation::rewrite(View& view, const Numbering& numbering, const record::TypeNames& types,
                          Rewritten& out) const {
    const ClientIds& ids = numbering.ids;
    std::vector<Rewriting> items;
    for (std::size_t i = 0; i < view.items.size(); ++i) {
        const ItemView item = view.items[i];
        Rewriting rewriting{.key = item.key,
                            .data = {item.data.begin(), item.data.end()},
                            .untold = view.untold.empty() ? 0 : view.untold[i]};
        const ObjectSpec* const object = types.object(item.key.type);
        const bool drawn = object != nullptr && numbering.others && phantoms_.has(*object, item);
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
    current_.clear();
    ++ticks_;
    bool changed = forget_missing();
    if (std::ranges::none_of(views, &View::translated)) {
        if (changed) {
            gather_renumbered();
        }
        id_kinds_.clear();
        present_.clear();
        return;
    }
    for (const View& view : views) {
        const auto [known, is_new] = numberings_.try_emplace(view.session);
        Numbering& numbering = known->second;
        bytes_ += is_new ? bytes_of(numbering) : 0;
        changed = read(view, types, numbering) || changed;
        numbering.seen = ticks_;
        current_.push_back(&numbering);
    }
    if (changed || !std::ranges::equal(views, present_, {}, &View::session)) {
        present_.clear();
        std::ranges::transform(views, std::back_inserter(present_), &View::session);
        assign();
    }
    if (std::ranges::any_of(current_, [](const auto* each) { return each->others; })) {
        phantoms_.gather(views, types);
    }
    rewritten_.resize(views.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
        if (views[i].translated) {
            rewrite(views[i], *current_[i], types, rewritten_[i]);
        }
    }
}

} // namespace tw::game
