#include "proxy/analyze/recorded_paths.h"

#include "proxy/analyze/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::analyze {

namespace json = boost::json;

namespace {

/// Velocities are in units per tick, times this.
constexpr std::int64_t kVelocityUnit = 256;
/// What a tee can move beyond its velocities: an explosion, a hook and a wall within a snapshot.
constexpr std::int64_t kSlack = std::int64_t{2} * map::kTileSize;
/// After this many ticks without a snapshot, nothing is known of what happened between. A client
/// that lags is sent one every 50 ticks.
constexpr std::int64_t kSilent = 50;
/// A tick this much lower is of another game. Late snapshots are far closer.
constexpr std::int64_t kFarBack = 250;
/// Signs of a death within so many ticks are of the same death: its event, and the kill messages of
/// all sessions. A killed tee comes back after half a second.
constexpr std::int64_t kSameDeath = 25;
/// The most sessions and the most players; more than years of recording have.
constexpr std::size_t kMaxViews = 65536;
constexpr std::size_t kMaxPlayers = 65536;
/// The most tees in a session's snapshots: twice the players of the largest servers.
constexpr std::size_t kMaxTees = 256;
constexpr std::size_t kMaxDeaths = 1'000'000;
/// The weapon in the kill message of a tee that the game removed.
constexpr std::int64_t kRemovedByGame = -3;

std::optional<std::int64_t> find_number(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_int64() ? std::optional{value->get_int64()} : std::nullopt;
}

std::int64_t number_in(const json::object& object, std::string_view key) {
    return find_number(object, key).value_or(0);
}

const json::object* find_object(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr ? value->if_object() : nullptr;
}

const json::array* find_array(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr ? value->if_array() : nullptr;
}

map::WorldPos position_in(const json::object& fields) {
    return {static_cast<int>(number_in(fields, "x")), static_cast<int>(number_in(fields, "y"))};
}

/// Calls `use` with each item of this type and its fields.
template <typename Use>
void each_item(const json::array& items, std::string_view type, Use use) {
    for (const json::value& item : items) {
        const json::object* object = item.if_object();
        if (object != nullptr && text_of(*object, "type") == type) {
            if (const json::object* fields = find_object(*object, "fields")) {
                use(*object, *fields);
            }
        }
    }
}

/// Returns the milliseconds since 1970 of a record's time, 2026-11-21T02:04:47.000000Z.
std::int64_t ms_of(std::string_view time) {
    const auto part = [time](std::size_t from, std::size_t size) {
        int value = 0;
        if (from + size <= time.size()) {
            std::from_chars(time.data() + from, time.data() + from + size, value);
        }
        return value;
    };
    const std::chrono::year_month_day day{std::chrono::year{part(0, 4)},
                                          std::chrono::month(static_cast<unsigned>(part(5, 2))),
                                          std::chrono::day(static_cast<unsigned>(part(8, 2)))};
    if (!day.ok()) {
        return 0;
    }
    const auto at = std::chrono::sys_days{day} + std::chrono::hours{part(11, 2)} +
                    std::chrono::minutes{part(14, 2)} + std::chrono::seconds{part(17, 2)} +
                    std::chrono::milliseconds{part(20, 3)};
    return at.time_since_epoch() / std::chrono::milliseconds{1};
}

/// A player's velocity or distance, so far that hostile numbers are not more.
constexpr std::int64_t kFarthest = std::int64_t{1} << 32U;

std::int64_t speed_in(const json::object& fields) {
    const auto size = [&fields](std::string_view key) {
        return std::abs(std::clamp(number_in(fields, key), -kFarthest, kFarthest)) / kVelocityUnit;
    };
    return size("vel_x") + size("vel_y");
}

} // namespace

class PathReader::Collector {
  public:
    Collector(std::string_view map_crc, std::size_t max_points)
        : map_crc_{map_crc}, max_points_{max_points} {}

    void add(const json::object& record) {
        const std::string_view type = text_of(record, "type");
        if (type == "records_lost") {
            for (auto& [unused, view] : views_) {
                forget_tees(view);
            }
            return;
        }
        const ViewId id{number_in(record, "session"),
                        type == "world" ? std::string{text_of(record, "server")} : std::string{}};
        if (!views_.contains(id) && views_.size() >= kMaxViews) {
            ++all_.left_out;
            return;
        }
        View& view = views_[id];
        view.session = static_cast<std::int32_t>(id.first);
        if (type == "world") {
            view.server = id.second;
            view.set_game(static_cast<std::uint64_t>(number_in(record, "run")));
            add_items(record, view);
        } else if (type == "snapshot") {
            add_items(record, view);
        } else if (type == "session") {
            on_session(record, view);
        } else if (type == "map") {
            view.map_crc = text_of(record, "crc");
            view.set_game(view.game + (record.contains("again") ? 0 : 1));
        } else if (type == "message" && text_of(record, "name") == "sv_kill_msg") {
            on_kill(record, view);
        } else if (type == "message" && text_of(record, "name") == "sv_kill_msg_team") {
            for (View* each : views_with(view)) {
                each->team_kill = each->tick;
            }
        }
    }

    [[nodiscard]] RecordedPaths take() {
        for (auto& [player, way] : ways_) {
            const std::size_t number = all_.players.size();
            for (auto& points : way.paths) {
                if (points.size() > 1) {
                    all_.paths.push_back({.player = number, .points = std::move(points)});
                }
            }
            if (!all_.paths.empty() && all_.paths.back().player == number) {
                all_.players.push_back(player.second);
            }
        }
        return std::move(all_);
    }

  private:
    struct Way;

    /// Lower than any tick, and far from all.
    static constexpr std::int64_t kNever = -kFarthest;

    /// A tee that a view shows.
    struct Tee {
        std::int64_t type_id = 0;
        std::int64_t since = 0; ///< the first tick that showed it without a gap
        Way* way = nullptr;
    };

    /// What a session shows; or the merged snapshots of a server, as session 0.
    struct View {
        std::int32_t session = 0;
        std::string server{};
        std::string map_crc{};  ///< empty if unknown
        std::uint64_t game = 0; ///< counts the maps that a session was sent to, or a server's runs
        bool new_game = true;   ///< no snapshot of this game was read yet
        std::optional<std::int64_t> own_id{}; ///< of the session's own player, if known
        std::int64_t tick = 0;                ///< of the last snapshot
        std::int64_t team_kill = kNever;      ///< when a kill message of a whole team came
        std::map<std::int64_t, Tee> tees{};   ///< by client id
        std::map<std::int64_t, Way*> dead{};  ///< those that a death event named, by client id

        void set_game(std::uint64_t now) {
            new_game = new_game || now != game;
            game = now;
        }
    };

    /// All paths of a player.
    struct Way {
        const View* view = nullptr;         ///< the one that shows the player; null if none does
        std::int64_t id = 0;                ///< the player's client id there
        bool own = false;                   ///< it is the player's own session
        std::int64_t shown = kNever;        ///< the last tick at which it showed the player
        std::int64_t speed = 0;             ///< at the last position, in units per tick
        bool ended = true;                  ///< the next position begins a path
        std::int64_t death_tick = kNever;   ///< when the player last died or was removed
        std::optional<std::size_t> death{}; ///< its place in the list of deaths
        std::int64_t event_tick = kNever;   ///< when the last death event named the player
        map::WorldPos event_at{0, 0};
        PathPoint last{};            ///< the last position
        std::uint64_t positions = 0; ///< of the last path
        std::vector<std::vector<PathPoint>> paths{};
    };

    /// A session's number and an empty text; for merged snapshots 0 and the server's address.
    using ViewId = std::pair<std::int64_t, std::string>;

    static void forget_tee(const View& view, const Tee& tee) {
        if (tee.way->view == &view) {
            tee.way->view = nullptr;
        }
    }

    static void forget_tees(View& view) {
        for (const auto& [unused, tee] : view.tees) {
            forget_tee(view, tee);
        }
        view.tees.clear();
    }

    static void on_session(const json::object& record, View& view) {
        const bool open = text_of(record, "event") == "open" && !record.contains("again");
        if (open || text_of(record, "event") == "close") {
            forget_tees(view);
            // Merged snapshots of a session's last ticks come after its end.
            std::string map_crc = open ? std::string{} : std::move(view.map_crc);
            view = {.session = view.session,
                    .server = std::move(view.server),
                    .map_crc = std::move(map_crc)};
        }
        if (const auto server = text_of(record, "server"); !server.empty()) {
            view.server = server;
        }
    }

    void on_kill(const json::object& record, View& view) {
        const json::object* fields = find_object(record, "fields");
        const auto victim = fields == nullptr ? std::nullopt : find_number(*fields, "victim");
        if (!victim) {
            return;
        }
        const bool died = number_in(*fields, "weapon") != kRemovedByGame;
        for (View* each : views_with(view)) {
            const auto tee = each->tees.find(*victim);
            const auto dead = each->dead.find(*victim);
            if (tee != each->tees.end() && tee->second.way->view == each) {
                on_death(*tee->second.way, died);
            } else if (tee == each->tees.end() && dead != each->dead.end() &&
                       is_soon_after(each->tick, dead->second->event_tick)) {
                on_death(*dead->second, died); // the message was lost at first
            }
        }
    }

    /// Returns a session's view, and that of its server's merged snapshots if there are any.
    std::vector<View*> views_with(View& session) {
        std::vector<View*> views{&session};
        if (const auto world = views_.find({0, session.server}); world != views_.end()) {
            views.push_back(&world->second);
        }
        return views;
    }

    /// `died`: false if the game removed the tee.
    void on_death(Way& way, bool died) {
        if (is_soon_after(way.shown, way.death_tick)) {
            return; // another session was told of it, too
        }
        way.ended = true;
        way.death_tick = way.shown;
        way.death.reset();
        if (died && all_.deaths.size() < kMaxDeaths) {
            way.death = all_.deaths.size();
            all_.deaths.push_back(is_soon_after(way.shown, way.event_tick) ? way.event_at
                                                                           : way.last.at);
        } else if (died) {
            ++all_.left_out;
        }
    }

    /// Takes the place of a death from its event. A server also sends one for a tee that is paused.
    void on_death_event(Way& way, const View& view, map::WorldPos at) {
        way.ended = true;
        way.event_tick = way.shown;
        way.event_at = at;
        if (is_soon_after(view.tick, view.team_kill)) {
            on_death(way, true); // the message does not name the team's members
        }
        if (way.death && is_soon_after(way.shown, way.death_tick)) {
            all_.deaths.at(*way.death) = at;
        }
    }

    static bool is_soon_after(std::int64_t tick, std::int64_t earlier) {
        return tick >= earlier && tick - earlier <= kSameDeath;
    }

    void add_items(const json::object& record, View& view) {
        const json::array* items = find_array(record, "items");
        const auto tick = find_number(record, "tick");
        if (items == nullptr || !tick || *tick < 0 || *tick > std::numeric_limits<int>::max()) {
            return;
        }
        const std::int64_t later = *tick - view.tick;
        if (!view.new_game && later <= 0 && later >= -kFarBack) {
            return; // late or repeated
        }
        if (view.new_game || later < 0) {
            for (const auto& [unused, tee] : view.tees) {
                tee.way->shown = tee.way->view == &view ? kNever : tee.way->shown;
            }
        }
        if (view.new_game || later < 0 || later > kSilent) {
            forget_tees(view);
        }
        view.new_game = false;
        view.tick = *tick;
        if (view.session != 0) {
            each_item(*items, "player_info",
                      [&](const json::object& item, const json::object& fields) {
                          if (number_in(fields, "local") == 1) {
                              view.own_id = find_number(item, "id");
                          }
                      });
        }
        each_item(*items, "death", [&](const json::object& /*item*/, const json::object& fields) {
            const auto tee = view.tees.find(number_in(fields, "client_id"));
            if (tee != view.tees.end() && tee->second.way->view == &view) {
                view.dead[tee->first] = tee->second.way;
                on_death_event(*tee->second.way, view, position_in(fields));
            }
        });
        remove_tees(record, *items, view);
        each_item(*items, "character", [&](const json::object& item, const json::object& fields) {
            add_tee(record, view, item, fields);
        });
        for (const auto& [unused, tee] : view.tees) {
            if (tee.way->view == &view) {
                tee.way->shown = view.tick;
            }
        }
    }

    /// Removes the tees that a snapshot no longer has.
    static void remove_tees(const json::object& record, const json::array& items, View& view) {
        const auto remove = [&view](const auto& tee) {
            forget_tee(view, tee->second);
            return view.tees.erase(tee);
        };
        if (is_true(record, "full")) {
            std::map<std::int64_t, bool> listed;
            each_item(items, "character",
                      [&](const json::object& item, const json::object& /*fields*/) {
                          listed[number_in(item, "id")] = true;
                      });
            for (auto tee = view.tees.begin(); tee != view.tees.end();) {
                tee = listed.contains(tee->first) ? std::next(tee) : remove(tee);
            }
        }
        const json::array* removed = find_array(record, "removed");
        for (std::size_t i = 0; removed != nullptr && i < removed->size(); ++i) {
            const json::array* key = (*removed)[i].if_array();
            if (key == nullptr || key->size() != 2 || !key->front().is_int64() ||
                !key->back().is_int64()) {
                continue;
            }
            const auto tee = view.tees.find(key->back().get_int64());
            if (tee != view.tees.end() && tee->second.type_id == key->front().get_int64()) {
                remove(tee);
            }
        }
    }

    /// Returns the session that has an item's position; for merged snapshots one that received the
    /// item.
    [[nodiscard]] const View* session_of(const View& view, const json::object& item) const {
        const json::array* seen_by = find_array(item, "seen_by");
        if (seen_by != nullptr && !seen_by->empty() && seen_by->front().is_int64()) {
            const auto found = views_.find({seen_by->front().get_int64(), {}});
            return found == views_.end() ? nullptr : &found->second;
        }
        return &view;
    }

    /// Returns a player's way; nullptr if there are too many players.
    [[nodiscard]] Way* way_of(const View& view, const json::object& item, std::int64_t id) {
        std::string name{text_of(item, "player")};
        if (name.empty()) {
            name = fmt::format("session {} id {}", view.session, id);
        }
        if (const auto found = ways_.find({view.server, name}); found != ways_.end()) {
            const Way& way = found->second;
            const auto other = view.tees.find(way.id);
            if (way.view == &view && way.id != id && other != view.tees.end() &&
                other->second.way == &way) {
                name += fmt::format(" id {}", id); // two players of one name
            }
        }
        std::pair player{view.server, std::move(name)};
        if (!ways_.contains(player) && ways_.size() >= kMaxPlayers) {
            return nullptr;
        }
        return &ways_[std::move(player)];
    }

    void add_tee(const json::object& record, View& view, const json::object& item,
                 const json::object& fields) {
        const View* const session = session_of(view, item);
        const bool knows_map = session != nullptr && !session->map_crc.empty();
        if (knows_map && session->map_crc != map_crc_) {
            ++all_.elsewhere;
            return;
        }
        all_.assumed += knows_map ? 0 : 1;
        const std::int64_t id = number_in(item, "id");
        Way* const way = way_of(view, item, id);
        if (way == nullptr || (!view.tees.contains(id) && view.tees.size() >= kMaxTees)) {
            ++all_.left_out;
            return;
        }
        Tee& tee = view.tees[id];
        if (tee.way != way) { // a new tee, or another player's
            if (tee.way != nullptr) {
                forget_tee(view, tee);
            }
            tee = {.type_id = number_in(item, "type_id"), .since = view.tick, .way = way};
        }
        const bool own = view.session != 0 && view.own_id == id;
        if (way->view != &view && !take_over(*way, tee, view, own)) {
            return;
        }
        way->id = id;
        way->own = own;
        // A server repeats a position while clients can predict the movement: it has its own tick.
        const std::int64_t core = number_in(fields, "tick");
        add_point(
            *way, tee,
            {.at = position_in(fields),
             .tick = static_cast<std::int32_t>(core > 0 && core <= view.tick ? core : view.tick),
             .ms = time_of(record),
             .session = view.session},
            speed_in(fields));
    }

    /// Lets this view replace the one that showed a player so far. Returns false if it does not.
    static bool take_over(Way& way, Tee& tee, View& view, bool own) {
        const std::int64_t later = view.tick - way.shown;
        const bool same_time = later >= -kFarBack && later <= kSilent;
        if (way.view == nullptr ? later <= 0 && same_time : same_time && (!own || way.own)) {
            return false;
        }
        way.ended = way.ended || later < -kFarBack;
        if (way.view != nullptr && same_time) {
            tee.since = std::min(tee.since, way.shown); // it was shown until now
        }
        way.view = &view;
        return true;
    }

    void add_point(Way& way, const Tee& tee, PathPoint point, std::int64_t speed) {
        const bool continues = !way.ended && tee.since <= way.shown;
        if (continues && point.at == way.last.at && point.tick <= way.last.tick) {
            return;
        }
        const bool begins = !continues || jumped(way, point, speed);
        way.last = point;
        way.speed = speed;
        if (begins) {
            way.ended = false;
            way.paths.emplace_back();
            way.positions = 0;
        }
        if (way.positions++ % every_ != 0) {
            return;
        }
        way.paths.back().push_back(point);
        if (++points_ >= max_points_) {
            thin_out();
        }
    }

    static bool jumped(const Way& way, const PathPoint& to, std::int64_t speed) {
        const std::int64_t ticks = std::max<std::int64_t>(std::int64_t{to.tick} - way.last.tick, 1);
        const std::int64_t reach = std::max(way.speed, speed) * ticks + kSlack;
        return std::abs(std::int64_t{to.at.x} - way.last.at.x) > reach ||
               std::abs(std::int64_t{to.at.y} - way.last.at.y) > reach;
    }

    /// Returns the milliseconds since the first position.
    std::uint32_t time_of(const json::object& record) {
        const std::string_view time = text_of(record, "t");
        if (time != all_.end) {
            now_ = ms_of(time);
            if (all_.begin.empty()) {
                all_.begin = time;
                begin_ = now_;
            }
            all_.end = time;
        }
        return static_cast<std::uint32_t>(
            std::clamp<std::int64_t>(now_ - begin_, 0, std::numeric_limits<std::uint32_t>::max()));
    }

    /// Drops every second point, also of later ones.
    void thin_out() {
        every_ *= 2;
        points_ = 0;
        for (auto& entry : ways_) {
            auto& paths = entry.second.paths;
            for (auto& path : paths) {
                for (std::size_t i = 0; i < path.size(); i += 2) {
                    path[i / 2] = path[i];
                }
                path.resize((path.size() + 1) / 2);
                points_ += path.size();
            }
            if (!paths.empty()) {
                std::erase_if(paths, [&paths](const auto& path) {
                    return path.size() < 2 && &path != &paths.back();
                });
            }
        }
    }

    std::string map_crc_;
    std::map<ViewId, View> views_;
    std::map<std::pair<std::string, std::string>, Way> ways_; ///< paths by server and player
    std::size_t max_points_;
    std::size_t points_ = 0;
    std::uint64_t every_ = 1; ///< one of this many positions becomes a point
    std::int64_t begin_ = 0;  ///< time of the first position, in milliseconds
    std::int64_t now_ = 0;    ///< and of the last
    RecordedPaths all_;
};

namespace {

bool may_be_wanted(std::string_view line) {
    constexpr std::array<std::string_view, 6> kWanted{
        R"("type":"snapshot")", R"("type":"world")",      R"("type":"session")",
        R"("type":"map")",      R"("name":"sv_kill_msg)", R"("type":"records_lost")"};
    return std::any_of(kWanted.begin(), kWanted.end(), [line](std::string_view each) {
        return line.find(each) != std::string_view::npos;
    });
}

} // namespace

PathReader::PathReader(std::string_view map_crc, std::size_t max_points)
    : collector_{std::make_unique<Collector>(map_crc, max_points)} {}

PathReader::~PathReader() = default;

void PathReader::on_line(std::string_view line) {
    // A cheap check first, as most lines have other types.
    if (!may_be_wanted(line)) {
        return;
    }
    boost::system::error_code error;
    const json::value record = json::parse(line, error);
    if (!error && record.is_object()) {
        collector_->add(record.get_object());
    }
}

RecordedPaths PathReader::take() {
    return collector_->take();
}

} // namespace tw::analyze
