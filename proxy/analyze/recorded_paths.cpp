#include "proxy/analyze/recorded_paths.h"

#include "proxy/analyze/map_visits.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/json.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

namespace tw::analyze {

namespace json = boost::json;
using record::flag_of, record::list_of, record::number_of, record::object_of, record::text_of;

namespace {

/// Velocities in snapshots are in world units per tick, multiplied by this.
constexpr std::int64_t kVelocityUnit = 256;
/// How far a tee can move from one snapshot to the next beyond what its velocity explains (world
/// units), because of an explosion, a hook or a wall.
constexpr std::int64_t kExtraDistance = std::int64_t{2} * map::kTileSize;
/// How fast a tee runs (world units per tick). A server sends no new position while clients can
/// predict the movement, so snapshots do not show how a tee accelerates or falls.
constexpr std::int64_t kRunSpeed = 10;
/// The number of ticks in which the speed of a falling tee grows by one world unit per tick.
constexpr std::int64_t kFallAccelerationTicks = 2;
// A ninja's dash. Snapshots have the velocity 0 during a dash.
constexpr std::int64_t kDashSpeed = 50; ///< world units per tick
constexpr std::int64_t kDashTicks = 10;
constexpr std::int64_t kWeaponNinja = 5; ///< the weapon
/// A longer time without a snapshot (ticks) ends the paths. Servers send a lagging client a
/// snapshot every 50 ticks.
constexpr std::int64_t kMaxSilentTicks = 50;
/// A death event and the kill messages of all sessions belong to the same death if they are at most
/// this many ticks apart. A killed tee comes back after half a second.
constexpr std::int64_t kSameDeathTicks = 25;
/// A kill message is not about the tees of a view whose latest snapshot is more than this many
/// milliseconds older. A merged snapshot is recorded at most a second late.
constexpr std::int64_t kMaxKillMessageDelayMs = 3000;
/// The most views (see View). Even recordings of years have fewer.
constexpr std::size_t kMaxViews = 65536;
constexpr std::size_t kMaxPlayers = 65536; ///< the most players
/// The most tees in a session's snapshots: twice the players of the largest servers.
constexpr std::size_t kMaxTees = 256;
constexpr std::size_t kMaxDeaths = 1'000'000;
/// The weapon in a kill message if the game removed the tee.
constexpr std::int64_t kRemovedByGame = -3;

std::int64_t number_or_zero(const json::object& object, std::string_view key) {
    return number_of(object, key).value_or(0);
}

map::WorldPos position_in(const json::object& fields) {
    return {static_cast<int>(number_or_zero(fields, "x")),
            static_cast<int>(number_or_zero(fields, "y"))};
}

/// Calls `use` with each item of this type and its fields.
template <typename Use>
void for_each_item(const json::array& items, std::string_view type, Use use) {
    for (const json::value& item : items) {
        const json::object* object = item.if_object();
        if (object != nullptr && text_of(*object, "type") == type) {
            if (const json::object* fields = object_of(*object, "fields")) {
                use(*object, *fields);
            }
        }
    }
}

bool shows_stopped_game(const json::object& game_info) {
    const json::object* names = object_of(game_info, "names");
    const json::array* flags = names == nullptr ? nullptr : list_of(*names, "game_state_flags");
    return flags != nullptr && std::ranges::any_of(*flags, [](const json::value& flag) {
               return flag == "paused" || flag == "gameover" || flag == "roundover";
           });
}

/// Higher velocities and distances in records are reduced to this, to prevent overflows.
constexpr std::int64_t kMaxDistance = std::int64_t{1} << 32U;

std::int64_t speed_in(const json::object& fields) {
    const auto size = [&fields](std::string_view key) {
        return std::abs(std::clamp(number_or_zero(fields, key), -kMaxDistance, kMaxDistance)) /
               kVelocityUnit;
    };
    return size("vel_x") + size("vel_y");
}

/// The properties of a tee that determine how far it can move.
struct Motion {
    std::int64_t speed = 0; ///< in units per tick, the sum of both directions
    bool is_running = false;
    bool is_ninja = false;
};

Motion motion_in(const json::object& fields) {
    return {.speed = speed_in(fields),
            .is_running = number_or_zero(fields, "direction") != 0,
            .is_ninja = number_or_zero(fields, "weapon") == kWeaponNinja};
}

/// Finds the paths from the records of all sessions and merged snapshots.
class PathCollector {
  public:
    PathCollector(std::string_view crc, std::string_view name, PlayerNames wanted,
                  std::size_t max_points)
        : map_crc_{crc}, map_name_{name}, wanted_{std::move(wanted)}, max_points_{max_points} {}

    void add(const json::object& record) {
        const std::string_view type = text_of(record, "type");
        types_.emplace(type);
        if (type == "records_lost") {
            for (auto& [unused, view] : views_) {
                forget_tees(view);
            }
            return;
        }
        const RecordedSessionKey id{number_or_zero(record, "session"),
                                    type == "world" ? std::string{text_of(record, "server")}
                                                    : std::string{}};
        if (!views_.contains(id) && views_.size() >= kMaxViews) {
            ++found_.num_left_out;
            return;
        }
        View& view = views_[id];
        view.session = static_cast<std::int32_t>(id.first);
        if (type == "world") {
            view.server = id.second;
            view.set_game(static_cast<std::uint64_t>(number_or_zero(record, "run")));
            update_world_map(view, record);
            add_items(record, view);
        } else if (type == "snapshot") {
            add_items(record, view);
        } else if (type == "session") {
            on_session(record, view);
        } else if (type == "map") {
            if (!view.map_name.empty() && !record.contains("again")) {
                view.game_over_ms = filter::parse_unix_ms(text_of(record, "t"));
            }
            view.map_crc = text_of(record, "crc");
            view.map_name = text_of(record, "name");
            view.set_game(view.game + (record.contains("again") ? 0 : 1));
        } else if (type == "message" && text_of(record, "name") == "sv_kill_msg") {
            on_kill(record, view);
        } else if (type == "message" && text_of(record, "name") == "sv_kill_msg_team") {
            for (View* each : session_and_world_views(view)) {
                each->team_kill_tick = each->tick;
            }
        }
    }

    [[nodiscard]] RecordedPaths finish() {
        // A kill message names a session, but a world names a server. Only session records tell
        // which server a session is on.
        found_.are_deaths_known =
            types_.contains("message") && (types_.contains("session") || !types_.contains("world"));
        for (auto& [player, player_path] : player_paths_) {
            extend_to_last_snapshot(player_path);
            const std::size_t number = found_.players.size();
            for (auto& points : player_path.paths) {
                if (points.size() > 1) {
                    found_.paths.push_back({.player = number, .points = std::move(points)});
                }
            }
            if (!found_.paths.empty() && found_.paths.back().player == number) {
                found_.players.push_back(player.second);
            }
        }
        return std::move(found_);
    }

  private:
    struct PlayerPath;

    /// A tick far below all real ticks.
    static constexpr std::int64_t kNoTick = -kMaxDistance;

    /// A tee in the latest snapshot of a view.
    struct Tee {
        std::int64_t type_id = 0;
        std::int64_t first_tick = 0; ///< all snapshots of the view since then contain the tee
        PlayerPath* player_path = nullptr;
    };

    /// The state of a session, or of a server's merged snapshots, which have session 0.
    struct View {
        std::int32_t session = 0;
        std::string server{};
        std::string map_crc{}; ///< empty if unknown
        std::string map_name{};
        /// Identifies the current game: the number of the session's maps so far, or the `run` of
        /// the merged snapshots.
        std::uint64_t game = 0;
        bool is_new_game = true;               ///< no snapshot of this game was read yet
        std::optional<std::int64_t> own_id{};  ///< client id of the session's player, if known
        std::int64_t tick = 0;                 ///< tick of the latest snapshot
        std::int64_t ms = 0;                   ///< time of the latest snapshot
        std::int64_t game_over_ms = 0;         ///< time when the map changed; 0: no change
        std::int64_t team_kill_tick = kNoTick; ///< tick of the latest kill message for a whole team
        std::map<std::int64_t, Tee> tees{};    ///< the tees of the latest snapshot, by client id
        bool is_game_stopped = false; ///< the game is paused or over in the latest snapshot
        /// The players that death events named, by client id.
        std::map<std::int64_t, PlayerPath*> killed_players{};

        void set_game(std::uint64_t now) {
            is_new_game = is_new_game || now != game;
            is_game_stopped = is_game_stopped && now == game;
            game = now;
        }
    };

    struct PlayerPath {
        const View* view = nullptr;  ///< view from which the path is taken; null: no view
        std::int64_t id = 0;         ///< the player's client id in `view`
        bool is_own_session = false; ///< `view` is the player's own session
        std::int64_t last_shown_tick = kNoTick; ///< latest tick of `view` with the player's tee
        Motion motion{};                        ///< at the latest position
        bool has_ended = true;                  ///< the next position begins a path
        std::int64_t death_tick = kNoTick; ///< tick at which the player last died or was removed
        std::optional<std::size_t> death_index{}; ///< index of the latest death in `deaths`
        std::int64_t death_event_tick =
            kNoTick; ///< tick of the latest death event about the player
        map::WorldPos death_event_position{0, 0};
        PathPoint last_point{};          ///< the latest position
        std::uint64_t num_positions = 0; ///< number of positions of the latest path
        std::vector<std::vector<PathPoint>> paths{};
    };

    static void forget_tee(const View& view, const Tee& tee) {
        if (tee.player_path->view == &view) {
            tee.player_path->view = nullptr;
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
            // The map is kept: merged snapshots of the session's last ticks follow the record of
            // its end, and update_world_map() takes their map from the session.
            std::string map_crc = open ? std::string{} : std::move(view.map_crc);
            std::string map_name = open ? std::string{} : std::move(view.map_name);
            view = {.session = view.session,
                    .server = std::move(view.server),
                    .map_crc = std::move(map_crc),
                    .map_name = std::move(map_name)};
        }
        if (const auto server = text_of(record, "server"); !server.empty()) {
            view.server = server;
        }
    }

    void on_kill(const json::object& record, View& view) {
        const json::object* fields = object_of(record, "fields");
        const auto victim = fields == nullptr ? std::nullopt : number_of(*fields, "victim");
        if (!victim) {
            return;
        }
        const bool died = number_or_zero(*fields, "weapon") != kRemovedByGame;
        const std::int64_t now = filter::parse_unix_ms(text_of(record, "t"));
        for (View* each : session_and_world_views(view)) {
            if (now - each->ms > kMaxKillMessageDelayMs || each->ms < view.game_over_ms) {
                continue; // a filter left out the snapshots of this time, or of this game
            }
            const auto tee = each->tees.find(*victim);
            const auto killed = each->killed_players.find(*victim);
            if (tee != each->tees.end() && tee->second.player_path->view == each) {
                on_death(*tee->second.player_path, died);
            } else if (tee == each->tees.end() && killed != each->killed_players.end() &&
                       is_soon_after(each->tick, killed->second->death_event_tick)) {
                // The killed tee was already missing in the snapshot before the kill message.
                on_death(*killed->second, died);
            }
        }
    }

    /// Returns a session's view, and the view of its server's merged snapshots, if that exists.
    std::vector<View*> session_and_world_views(View& session) {
        std::vector<View*> views{&session};
        if (const auto world = views_.find({0, session.server}); world != views_.end()) {
            views.push_back(&world->second);
        }
        return views;
    }

    /// Ends the player's path, and adds a death. `died`: false if the game removed the tee instead.
    void on_death(PlayerPath& player_path, bool died) {
        if (is_soon_after(player_path.last_shown_tick, player_path.death_tick)) {
            return; // another session's kill message has reported this death
        }
        player_path.has_ended = true;
        player_path.death_tick = player_path.last_shown_tick;
        player_path.death_index.reset();
        if (died && found_.deaths.size() < kMaxDeaths) {
            player_path.death_index = found_.deaths.size();
            found_.deaths.push_back(
                is_soon_after(player_path.last_shown_tick, player_path.death_event_tick)
                    ? player_path.death_event_position
                    : player_path.last_point.at);
        } else if (died) {
            ++found_.num_left_out;
        }
    }

    /// Ends the player's path, and moves the player's death to the position `at` of the death
    /// event. A server also sends a death event when it pauses a tee.
    void on_death_event(PlayerPath& player_path, const View& view, map::WorldPos at) {
        player_path.has_ended = true;
        player_path.death_event_tick = player_path.last_shown_tick;
        player_path.death_event_position = at;
        if (is_soon_after(view.tick, view.team_kill_tick)) {
            on_death(player_path, true); // a team's kill message does not name the team's members
        }
        if (player_path.death_index &&
            is_soon_after(player_path.last_shown_tick, player_path.death_tick)) {
            found_.deaths.at(*player_path.death_index) = at;
        }
    }

    static bool is_soon_after(std::int64_t tick, std::int64_t earlier) {
        return tick >= earlier && tick - earlier <= kSameDeathTicks;
    }

    void add_items(const json::object& record, View& view) {
        const json::array* items = list_of(record, "items");
        const auto tick = number_of(record, "tick");
        if (items == nullptr || !tick || *tick < 0 || *tick > std::numeric_limits<int>::max()) {
            return;
        }
        const std::int64_t later = *tick - view.tick;
        if (!view.is_new_game && later <= 0 && later >= -kNewGameTicks) {
            return; // the snapshot is late or repeated
        }
        if (view.is_new_game || later < 0) {
            for (const auto& [unused, tee] : view.tees) {
                if (tee.player_path->view == &view) {
                    extend_to_last_snapshot(*tee.player_path);
                    tee.player_path->last_shown_tick = kNoTick;
                }
            }
        }
        if (view.is_new_game || later < 0 || later > kMaxSilentTicks) {
            forget_tees(view);
        }
        view.is_new_game = false;
        view.tick = *tick;
        view.ms = filter::parse_unix_ms(text_of(record, "t"));
        if (view.session != 0) {
            for_each_item(*items, "player_info",
                          [&](const json::object& item, const json::object& fields) {
                              if (number_or_zero(fields, "local") == 1) {
                                  view.own_id = number_of(item, "id");
                              }
                          });
        }
        for_each_item(*items, "death",
                      [&](const json::object& /*item*/, const json::object& fields) {
                          const auto tee = view.tees.find(number_or_zero(fields, "client_id"));
                          if (tee != view.tees.end() && tee->second.player_path->view == &view) {
                              view.killed_players[tee->first] = tee->second.player_path;
                              on_death_event(*tee->second.player_path, view, position_in(fields));
                          }
                      });
        if (update_stopped_time(record, *items, view)) {
            forget_tees(view);
            return;
        }
        remove_tees(record, *items, view);
        for_each_item(*items, "character",
                      [&](const json::object& item, const json::object& fields) {
                          add_tee(record, view, item, fields);
                      });
        for (const auto& [unused, tee] : view.tees) {
            if (tee.player_path->view == &view) {
                tee.player_path->last_shown_tick = view.tick;
            }
        }
    }

    /// Returns whether the game is paused or over. If so, adds the time since the previous snapshot
    /// to RecordedPaths::stopped_ms.
    bool update_stopped_time(const json::object& record, const json::array& items, View& view) {
        const bool was_stopped = view.is_game_stopped;
        for (const json::value& item : items) {
            const json::object* fields = object_of(item.if_object(), "fields");
            if (fields != nullptr && fields->contains("game_state_flags")) {
                view.is_game_stopped = shows_stopped_game(item.get_object());
            }
        }
        if (view.is_game_stopped && !is_on_other_map(view)) {
            const std::int64_t now = filter::parse_unix_ms(text_of(record, "t"));
            if (was_stopped && now > stopped_until_) { // not yet counted for another session
                found_.stopped_ms += static_cast<std::uint64_t>(now - stopped_until_);
            }
            stopped_until_ = std::max(stopped_until_, now);
        }
        return view.is_game_stopped;
    }

    /// Compares checksums, or names if the view's checksum is unknown. The name of a downloaded map
    /// file is NAME_CHECKSUM.map.
    [[nodiscard]] bool is_on_other_map(const View& view) const {
        if (!view.map_crc.empty() || view.map_name.empty() || map_name_.empty()) {
            return !view.map_crc.empty() && view.map_crc != map_crc_;
        }
        return view.map_name != map_name_ && !map_name_.starts_with(view.map_name + '_');
    }

    /// Sets the map of a server's merged snapshots (`world`). Takes the checksum from a session
    /// that received one of their items, unless that session is already on a map with another name.
    void update_world_map(View& world, const json::object& record) const {
        const std::string_view name = text_of(record, "map");
        if (world.is_new_game || world.map_name != name) {
            world.map_name = name;
            world.map_crc.clear();
        }
        const auto session = views_.find({find_receiving_session(record).value_or(0), {}});
        if (world.map_crc.empty() && session != views_.end() &&
            (name.empty() || name == session->second.map_name)) {
            world.map_name = session->second.map_name;
            world.map_crc = session->second.map_crc;
        }
    }

    static void remove_tees(const json::object& record, const json::array& items, View& view) {
        const auto remove = [&view](const auto& tee) {
            forget_tee(view, tee->second);
            return view.tees.erase(tee);
        };
        if (flag_of(record, "full")) {
            std::set<std::int64_t> listed;
            for_each_item(items, "character",
                          [&](const json::object& item, const json::object& /*fields*/) {
                              listed.insert(number_or_zero(item, "id"));
                          });
            for (auto tee = view.tees.begin(); tee != view.tees.end();) {
                tee = listed.contains(tee->first) ? std::next(tee) : remove(tee);
            }
        }
        for (const auto& [type_id, id] : removed_items(record)) {
            const auto tee = view.tees.find(id);
            if (tee != view.tees.end() && tee->second.type_id == type_id) {
                remove(tee);
            }
        }
    }

    /// Returns whether the player's paths are needed. Adds the name to `players_on_map`.
    bool is_player_wanted(const std::string& name) {
        const bool listed = wanted_.contains(name);
        if (listed || found_.players_on_map.size() < kMaxPlayersOnMap) {
            found_.players_on_map.insert(name);
        }
        return listed || wanted_.empty();
    }

    /// Returns the paths of a player. Adds a new player, or returns null at kMaxPlayers.
    [[nodiscard]] PlayerPath* find_or_add_path(const View& view, std::string name,
                                               std::int64_t id) {
        if (const auto found = player_paths_.find({view.server, name});
            found != player_paths_.end()) {
            const PlayerPath& player_path = found->second;
            const auto other = view.tees.find(player_path.id);
            if (player_path.view == &view && player_path.id != id && other != view.tees.end() &&
                other->second.player_path == &player_path) {
                name += fmt::format(" id {}", id); // two players have this name
            }
        }
        std::pair player{view.server, std::move(name)};
        if (!player_paths_.contains(player) && player_paths_.size() >= kMaxPlayers) {
            return nullptr;
        }
        return &player_paths_[std::move(player)];
    }

    void add_tee(const json::object& record, View& view, const json::object& item,
                 const json::object& fields) {
        const std::int64_t id = number_or_zero(item, "id");
        std::string name{text_of(item, "player")};
        if (name.empty()) {
            name = fmt::format("session {} id {}", view.session, id);
        }
        if (is_on_other_map(view)) {
            found_.positions_on_other_maps += wanted_.empty() || wanted_.contains(name) ? 1U : 0U;
            if (found_.other_maps.size() < kMaxOtherMaps) {
                found_.other_maps.insert(view.map_name);
            }
            return;
        }
        if (!is_player_wanted(name)) {
            return;
        }
        found_.positions_on_unknown_maps += view.map_crc.empty() ? 1U : 0U;
        PlayerPath* const player_path = find_or_add_path(view, std::move(name), id);
        if (player_path == nullptr || (!view.tees.contains(id) && view.tees.size() >= kMaxTees)) {
            ++found_.num_left_out;
            return;
        }
        Tee& tee = view.tees[id];
        if (tee.player_path != player_path) { // a new tee, or the tee of another player
            if (tee.player_path != nullptr) {
                forget_tee(view, tee);
            }
            tee = {.type_id = number_or_zero(item, "type_id"),
                   .first_tick = view.tick,
                   .player_path = player_path};
        }
        const bool own = view.session != 0 && view.own_id == id;
        if (player_path->view != &view && !take_over_path(*player_path, tee, view, own)) {
            return;
        }
        player_path->id = id;
        player_path->is_own_session = own;
        // The position may be older than the snapshot: a server repeats a position while clients
        // can predict the movement. The item contains the tick of the position.
        const std::int64_t core = number_or_zero(fields, "tick");
        add_point(
            *player_path, tee,
            {.at = position_in(fields),
             .tick = static_cast<std::int32_t>(core > 0 && core <= view.tick ? core : view.tick),
             .ms = ms_since_begin(record),
             .session = view.session},
            motion_in(fields));
    }

    /// Makes `view` the source of the player's path. Returns false if another view shows the tee.
    /// The player's own session (`own`) replaces a source that is another player's session.
    static bool take_over_path(PlayerPath& player_path, Tee& tee, View& view, bool own) {
        const std::int64_t later = view.tick - player_path.last_shown_tick;
        const bool same_time = later >= -kNewGameTicks && later <= kMaxSilentTicks;
        if (player_path.view == nullptr ? later <= 0 && same_time
                                        : same_time && (!own || player_path.is_own_session)) {
            return false;
        }
        player_path.has_ended = player_path.has_ended || later < -kNewGameTicks;
        if (player_path.view != nullptr && same_time) {
            tee.first_tick =
                std::min(tee.first_tick,
                         player_path.last_shown_tick); // no gap, as the other view had the tee
        }
        player_path.view = &view;
        return true;
    }

    void add_point(PlayerPath& player_path, const Tee& tee, PathPoint point, Motion motion) {
        const bool continues =
            !player_path.has_ended && tee.first_tick <= player_path.last_shown_tick;
        if (continues && point.at == player_path.last_point.at &&
            point.tick <= player_path.last_point.tick) {
            return;
        }
        const bool jumped = continues && has_jumped(player_path, point, motion);
        const bool begins = !continues || jumped;
        if (begins) {
            extend_to_last_snapshot(player_path);
        }
        if (jumped) {
            ++found_.num_jumps;
            found_.jump_ticks += static_cast<std::uint64_t>(
                std::max<std::int64_t>(std::int64_t{point.tick} - player_path.last_point.tick, 0));
        }
        player_path.last_point = point;
        player_path.motion = motion;
        if (begins) {
            player_path.has_ended = false;
            player_path.paths.emplace_back();
            player_path.num_positions = 0;
        }
        if (player_path.num_positions++ % point_interval_ != 0) {
            return;
        }
        player_path.paths.back().push_back(point);
        if (++num_points_ >= max_points_) {
            drop_every_second_point();
        }
    }

    /// If the tee stands still, extends its path to the latest snapshot with the tee. Snapshots of
    /// such a tee repeat an old position and its tick.
    void extend_to_last_snapshot(PlayerPath& player_path) {
        if (!player_path.paths.empty() && player_path.motion.speed == 0 &&
            player_path.last_shown_tick > player_path.last_point.tick) {
            player_path.last_point.tick = static_cast<std::int32_t>(player_path.last_shown_tick);
            player_path.paths.back().push_back(player_path.last_point);
            ++num_points_;
        }
    }

    static bool has_jumped(const PlayerPath& player_path, const PathPoint& to, const Motion& now) {
        const Motion& before = player_path.motion;
        const std::int64_t ticks =
            std::max<std::int64_t>(std::int64_t{to.tick} - player_path.last_point.tick, 1);
        const bool runs = before.is_running || before.speed != 0;
        const std::int64_t speed = std::max({before.speed, now.speed, runs ? kRunSpeed : 0});
        const bool is_ninja = before.is_ninja || now.is_ninja;
        const std::int64_t reach = speed * ticks + kExtraDistance +
                                   (is_ninja ? kDashSpeed * std::min(ticks, kDashTicks) : 0);
        const std::int64_t fall = runs ? ticks * ticks / (2 * kFallAccelerationTicks) : 0;
        const std::int64_t down = std::int64_t{to.at.y} - player_path.last_point.at.y;
        return std::abs(std::int64_t{to.at.x} - player_path.last_point.at.x) > reach ||
               down > reach + fall || -down > reach;
    }

    /// Returns the milliseconds from the first position to the record.
    std::uint32_t ms_since_begin(const json::object& record) {
        if (const std::string_view time = text_of(record, "t"); time != found_.end) {
            found_.end = time;
            now_ms_ = filter::parse_unix_ms(time);
            if (found_.begin.empty()) {
                found_.begin = time;
                begin_ms_ = now_ms_;
            }
        }
        return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
            now_ms_ - begin_ms_, 0, std::numeric_limits<std::uint32_t>::max()));
    }

    /// Drops every second point of all paths. Later, half as many positions become points.
    void drop_every_second_point() {
        point_interval_ *= 2;
        num_points_ = 0;
        for (auto& entry : player_paths_) {
            auto& paths = entry.second.paths;
            for (auto& path : paths) {
                for (std::size_t i = 0; i < path.size(); i += 2) {
                    path[i / 2] = path[i];
                }
                path.resize((path.size() + 1) / 2);
                num_points_ += path.size();
            }
            if (!paths.empty()) {
                std::erase_if(paths, [&paths](const auto& path) {
                    return path.size() < 2 && &path != &paths.back();
                });
            }
        }
    }

    std::string map_crc_;
    std::string map_name_;
    PlayerNames wanted_; ///< empty for all players
    std::map<RecordedSessionKey, View> views_;
    std::map<std::pair<std::string, std::string>, PlayerPath>
        player_paths_; ///< paths by server and player name
    std::size_t max_points_;
    std::size_t num_points_ = 0;
    std::uint64_t point_interval_ = 1; ///< only every n-th position becomes a point; this is n
    std::int64_t begin_ms_ = 0;        ///< time of the first position, in milliseconds
    std::int64_t now_ms_ = 0;          ///< time of the latest position, in milliseconds
    std::int64_t stopped_until_ = 0;   ///< the latest time that RecordedPaths::stopped_ms includes
    std::set<std::string> types_;      ///< types of the records so far
    RecordedPaths found_;
};

} // namespace

RecordedPaths find_paths(const LineSource& read_lines, std::string_view map_crc,
                         std::string_view map_name, PlayerNames wanted, std::size_t max_points) {
    PathCollector collector{map_crc, map_name, std::move(wanted), max_points};
    read_lines([&collector](std::string_view line) {
        boost::system::error_code error;
        const json::value record = json::parse(line, error);
        if (!error && record.is_object()) {
            collector.add(record.get_object());
        }
    });
    return collector.finish();
}

} // namespace tw::analyze
