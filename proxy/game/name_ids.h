#pragma once

#include "proxy/record/roster.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

namespace tw::game {

/// The server's ids of players, by their names: no two names have one. A name keeps its id beyond the
/// tick in which a view told it, until another name is told to have it.
class NameIds {
  public:
    /// Who is not known by a view that knows all gets an id that no server has.
    static constexpr std::uint16_t kFirstMadeUp = 128;
    /// Beyond that, whoever was not seen for longest is forgotten.
    static constexpr std::size_t kMaxNames = 1024;

    NameIds() = default;
    NameIds(const NameIds&) = delete;
    NameIds& operator=(const NameIds&) = delete;
    NameIds(NameIds&&) = delete;
    NameIds& operator=(NameIds&&) = delete;
    ~NameIds() = default;

    /// Another run of the server.
    void reset();

    /// Ids that are given from now on are all different, until this is called again.
    void begin_tick() { ++tick_; }

    /// A view knows: whoever had this id before has another name now, or left.
    void learn(const std::string& name, std::uint16_t id);

    /// Whether it was learned in this tick.
    [[nodiscard]] bool knows(const std::string& name) const;
    [[nodiscard]] bool knows(std::uint16_t id) const;

    /// The last one of this name, or one that nobody has. Nothing: more names are in this tick than can
    /// be kept.
    [[nodiscard]] std::optional<std::uint16_t> id_of(const std::string& name);

  private:
    struct Known {
        std::string name;
        std::uint16_t id = 0;
        std::uint64_t seen = 0; ///< in this tick
        std::uint64_t told = 0; ///< by a view that knows all
    };

    using Place = std::list<Known>::iterator;

    /// As many as a roster has room for are in use, while that is enough for a tick.
    static constexpr std::size_t kFewMadeUp = record::Roster::kMaxPlayers;

    void forget(Place known);
    /// Makes it the one that was seen last.
    void see(Place known);
    /// False: all that are kept were seen in this tick.
    [[nodiscard]] bool make_room();
    [[nodiscard]] std::uint16_t make_up();
    [[nodiscard]] Place add(const std::string& name, std::uint16_t id);

    std::list<Known> known_; ///< who was not seen for longest is the first
    std::map<std::string, Place> by_name_;
    std::map<std::uint16_t, Place> by_id_;
    std::uint64_t tick_ = 0;
};

} // namespace tw::game
