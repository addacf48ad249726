#include "proxy/report/recorded_paths.h"

#include <cstdint>
#include <cstdlib>
#include <map>
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
/// More players and points than this would not be seen in a picture anyway.
constexpr std::size_t kMaxPlayers = 256;
constexpr std::size_t kMaxPoints = 4'000'000;

std::int64_t number(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

std::string_view text(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string()
               ? std::string_view{value->get_string().data(), value->get_string().size()}
               : std::string_view{};
}

class Collector {
  public:
    void add_snapshot(const json::object& record) {
        const json::value* items = record.if_contains("items");
        if (items == nullptr || !items->is_array()) {
            return;
        }
        const Teller teller{.session = number(record, "session"),
                            .server = text(record, "server"),
                            .run = number(record, "run")};
        for (const json::value& item : items->get_array()) {
            if (item.is_object() && text(item.get_object(), "type") == "character") {
                add(teller, item.get_object());
            }
        }
    }

    [[nodiscard]] std::vector<map::Path> take() {
        std::vector<map::Path> paths;
        for (auto& [player, way] : ways_) {
            for (map::Path& path : way.paths) {
                if (path.size() > 1) {
                    paths.push_back(std::move(path));
                }
            }
        }
        return paths;
    }

  private:
    struct Way {
        std::int64_t session = 0; ///< the first that saw the player; others see the same
        std::int64_t run = 0;     ///< of the server, that the last path is of
        std::vector<map::Path> paths;
    };

    /// Whose record it is. Of worlds, the server and its run: many servers may have an ann.
    struct Teller {
        std::int64_t session = 0;
        std::string_view server;
        std::int64_t run = 0;
    };

    void add(const Teller& teller, const json::object& item) {
        const json::value* fields = item.if_contains("fields");
        if (fields == nullptr || !fields->is_object() || points_ >= kMaxPoints) {
            return;
        }
        std::string name{text(item, "player")};
        if (name.empty()) {
            name = fmt::format("session {} id {}", teller.session, number(item, "id"));
        }
        const std::pair player{std::string{teller.server}, std::move(name)};
        if (!ways_.contains(player) && ways_.size() >= kMaxPlayers) {
            return;
        }
        Way& way =
            ways_
                .try_emplace(player, Way{.session = teller.session, .run = teller.run, .paths = {}})
                .first->second;
        if (way.session != teller.session) {
            return;
        }
        const map::WorldPos at{static_cast<int>(number(fields->get_object(), "x")),
                               static_cast<int>(number(fields->get_object(), "y"))};
        const bool jumped = way.paths.empty() || std::exchange(way.run, teller.run) != teller.run ||
                            std::abs(std::int64_t{at.x} - way.paths.back().back().x) > kJump ||
                            std::abs(std::int64_t{at.y} - way.paths.back().back().y) > kJump;
        if (jumped) {
            way.paths.emplace_back();
        }
        way.paths.back().push_back(at);
        ++points_;
    }

    std::map<std::pair<std::string, std::string>, Way> ways_; ///< by server and player
    std::size_t points_ = 0;
};

} // namespace

std::vector<map::Path> read_recorded_paths(sink::LineReader& records) {
    Collector collector;
    for (std::string_view line; records.next(line);) {
        // Cheap look first: most lines are no snapshots.
        if (line.find(R"("type":"snapshot")") == std::string_view::npos &&
            line.find(R"("type":"world")") == std::string_view::npos) {
            continue;
        }
        boost::system::error_code error;
        const json::value record = json::parse(line, error);
        if (!error && record.is_object()) {
            collector.add_snapshot(record.get_object());
        }
    }
    return collector.take();
}

} // namespace tw::report
