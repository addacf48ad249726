#include "proxy/report/recorded_paths.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::report {

namespace {

namespace json = boost::json;

/// A jump of more than this between two positions is a respawn or a teleport: a new way begins.
constexpr int kJump = 20 * map::kTileSize;
/// A session that did not show a player for so many ticks has lost sight of it, or sees another game.
constexpr std::int64_t kSilent = 50;
/// As many as are recorded at a time in years.
constexpr std::size_t kMaxPaths = 65536;
/// More players than this would not be seen in a picture anyway.
constexpr std::size_t kMaxPlayers = 256;

std::int64_t number_in(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

std::string_view text(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string()
               ? std::string_view{value->get_string().data(), value->get_string().size()}
               : std::string_view{};
}

} // namespace

class PathReader::Collector {
  public:
    Collector(std::string_view map_crc, std::size_t max_points)
        : map_crc_{map_crc}, max_points_{max_points} {}

    void add(const json::object& record) {
        const std::string_view type = text(record, "type");
        const std::int64_t number = number_in(record, "session");
        if (type == "world") {
            add_items(record, {.session = 0,
                               .server = std::string{text(record, "server")},
                               .run = number_in(record, "run"),
                               .tick = number_in(record, "tick")});
            return;
        }
        if (!sessions_.contains(number) && sessions_.size() >= kMaxPaths) {
            return;
        }
        if (type == "session" && text(record, "event") == "close") {
            sessions_.erase(number);
        } else if (type == "session") {
            sessions_[number].server = text(record, "server");
        } else if (type == "map") {
            sessions_[number].on_map(text(record, "crc"), record.contains("again"));
        } else if (type == "snapshot") {
            const Session& session = sessions_[number];
            add_items(record, {.session = number,
                               .server = session.server,
                               .run = session.maps,
                               .tick = number_in(record, "tick")});
        }
    }

    [[nodiscard]] RecordedPaths take() {
        RecordedPaths all{.paths = {}, .elsewhere = elsewhere_};
        for (auto& [player, way] : ways_) {
            for (map::Path& path : way.paths) {
                if (path.size() > 1) {
                    all.paths.push_back(std::move(path));
                }
            }
        }
        return all;
    }

  private:
    /// Whose record it is. Of worlds, the server and its run: many servers may have an ann.
    struct Teller {
        std::int64_t session = 0;
        std::string server;
        std::int64_t run = 0;
        std::int64_t tick = 0;
    };

    struct Session {
        std::string server;
        std::string map_crc;                 ///< empty: nobody said
        std::int64_t maps = 0;               ///< that it was sent to
        std::optional<std::int64_t> local{}; ///< the id of its own player, where that is told

        void on_map(std::string_view crc, bool again) {
            maps += again ? 0 : 1;
            map_crc = crc;
        }
    };

    struct Way {
        Teller teller;               ///< the one that last showed the player; others show the same
        bool own = false;            ///< that is the player's own session
        map::WorldPos at{0, 0};      ///< the last one
        std::uint64_t positions = 0; ///< of the last path
        std::vector<map::Path> paths;
    };

    void add_items(const json::object& record, const Teller& teller) {
        const json::value* items = record.if_contains("items");
        if (items == nullptr || !items->is_array()) {
            return;
        }
        const auto of_type = [&](std::string_view type, auto use) {
            for (const json::value& item : items->get_array()) {
                if (item.is_object() && text(item.get_object(), "type") == type) {
                    const json::value* fields = item.get_object().if_contains("fields");
                    if (fields != nullptr && fields->is_object()) {
                        use(item.get_object(), fields->get_object());
                    }
                }
            }
        };
        if (teller.session != 0) {
            of_type("player_info", [&](const json::object& item, const json::object& fields) {
                if (number_in(fields, "local") == 1) {
                    sessions_[teller.session].local = number_in(item, "id");
                }
            });
        }
        of_type("character", [&](const json::object& item, const json::object& fields) {
            add_position(teller, item, fields);
        });
    }

    /// The session that says where an item is: of worlds one that was shown it.
    [[nodiscard]] const Session* session_of(const Teller& teller, const json::object& item) const {
        std::int64_t session = teller.session;
        const json::value* seen_by = item.if_contains("seen_by");
        if (seen_by != nullptr && seen_by->is_array() && !seen_by->get_array().empty() &&
            seen_by->get_array().front().is_int64()) {
            session = seen_by->get_array().front().get_int64();
        }
        const auto found = sessions_.find(session);
        return found == sessions_.end() ? nullptr : &found->second;
    }

    void add_position(const Teller& teller, const json::object& item, const json::object& fields) {
        const Session* const session = session_of(teller, item);
        if (session != nullptr && !session->map_crc.empty() && session->map_crc != map_crc_) {
            ++elsewhere_;
            return;
        }
        std::string name{text(item, "player")};
        if (name.empty()) {
            name = fmt::format("session {} id {}", teller.session, number_in(item, "id"));
        }
        const std::pair player{teller.server, std::move(name)};
        if (!ways_.contains(player) && ways_.size() >= kMaxPlayers) {
            return;
        }
        Way& way = ways_[player];
        const bool own = session != nullptr && session->local == number_in(item, "id");
        if (!way.paths.empty() && way.teller.session != teller.session &&
            !takes_over(way, teller, own)) {
            return;
        }
        const bool same_game = way.teller.session != teller.session || way.teller.run == teller.run;
        way.teller = teller;
        way.own = own;
        add_point(
            way,
            {static_cast<int>(number_in(fields, "x")), static_cast<int>(number_in(fields, "y"))},
            same_game);
    }

    /// Whether a session, or worlds, go on with the way of a player that another one showed.
    [[nodiscard]] bool takes_over(const Way& way, const Teller& teller, bool own) const {
        const std::int64_t later = teller.tick - way.teller.tick;
        const bool gone = way.teller.session != 0 && !sessions_.contains(way.teller.session);
        return (own && !way.own) || gone || later > kSilent || later < -kSilent;
    }

    void add_point(Way& way, map::WorldPos at, bool same_game) {
        const bool jumped = way.paths.empty() || !same_game ||
                            std::abs(std::int64_t{at.x} - way.at.x) > kJump ||
                            std::abs(std::int64_t{at.y} - way.at.y) > kJump;
        way.at = at;
        if (jumped) {
            way.paths.emplace_back();
            way.positions = 0;
        }
        if (way.positions++ % every_ != 0) {
            return;
        }
        way.paths.back().push_back(at);
        if (++points_ >= max_points_) {
            thin_out();
        }
    }

    /// Leaves out every other point, from now on, too.
    void thin_out() {
        every_ *= 2;
        points_ = 0;
        for (auto& entry : ways_) {
            Way& way = entry.second;
            for (map::Path& path : way.paths) {
                for (std::size_t i = 0; i < path.size(); i += 2) {
                    path[i / 2] = path[i];
                }
                path.resize((path.size() + 1) / 2);
                points_ += path.size();
            }
            if (!way.paths.empty()) {
                std::erase_if(way.paths, [&way](const map::Path& path) {
                    return path.size() < 2 && &path != &way.paths.back();
                });
            }
        }
    }

    std::string map_crc_;
    std::map<std::int64_t, Session> sessions_;
    std::map<std::pair<std::string, std::string>, Way> ways_; ///< by server and player
    std::size_t max_points_;
    std::size_t points_ = 0;
    std::uint64_t every_ = 1; ///< so many positions make a point
    std::uint64_t elsewhere_ = 0;
};

namespace {

bool may_be_wanted(std::string_view line) {
    constexpr std::array<std::string_view, 4> kTypes{R"("type":"snapshot")", R"("type":"world")",
                                                     R"("type":"session")", R"("type":"map")"};
    return std::any_of(kTypes.begin(), kTypes.end(), [line](std::string_view type) {
        return line.find(type) != std::string_view::npos;
    });
}

} // namespace

PathReader::PathReader(std::string_view map_crc, std::size_t max_points)
    : collector_{std::make_unique<Collector>(map_crc, max_points)} {}

PathReader::~PathReader() = default;

void PathReader::on_line(std::string_view line) {
    // Cheap look first: most lines are of other types.
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

} // namespace tw::report
