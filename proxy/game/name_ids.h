#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

namespace tw::game {

/// Ids of players in a world, by their names: no two names have one. A name keeps its id beyond the tick
/// in which it was given, until another name is known to have it.
class NameIds {
  public:
    /// Players of whom no better id is known get one that no server has.
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

    /// The server has this id for the name: whoever had it before has another name now, or left.
    void learn(const std::string& name, std::uint16_t id);

    /// Whether it was learned in this tick.
    [[nodiscard]] bool knows(const std::string& name) const;
    [[nodiscard]] bool knows(std::uint16_t id) const;

    /// The server's id of a name, as it was learned last.
    [[nodiscard]] std::optional<std::uint16_t> learned(const std::string& name) const;
    /// A name that plays in this tick keeps that id, whatever views offer.
    void keep_learned(const std::string& name);

    /// Clients show the name under this id, and nobody knows the server's. Without effect if the name
    /// has an id in this tick, or another name has this one.
    void offer(const std::string& name, std::uint16_t id);

    struct Id {
        std::uint16_t id = 0;
        record::IdKind kind = record::IdKind::server;
    };

    /// The last one of this name, or one that nobody has. Nothing: more names are in this tick than can
    /// be kept.
    [[nodiscard]] std::optional<Id> id_of(const std::string& name);

  private:
    struct Known {
        std::string name;
        std::uint16_t id = 0;
        record::IdKind kind = record::IdKind::server;
        std::uint64_t seen = 0;    ///< the tick in which it had this id last
        std::uint64_t learned = 0; ///< the tick in which the server was last known to have it
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
    Place add(const std::string& name, std::uint16_t id, record::IdKind kind);

    std::list<Known> known_; ///< who was not seen for longest is the first
    std::map<std::string, Place> by_name_;
    std::map<std::uint16_t, Place> by_id_;
    std::uint64_t tick_ = 0;
};

} // namespace tw::game
