#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::game {

/// What happens to a session, as far as it matters for the worlds of its server. What it points at
/// lives as long as the call that hands it over.
struct Input {
    enum class Kind : std::uint8_t {
        open,     ///< a session begins, or goes on with another connection: `server`
        map,      ///< it is told of a map: `map`
        snapshot, ///< a verified one: `tick`, `items`, `world`, `dialect`, `roster`, `client_version`
        message,     ///< it is told something that may be for everybody: `payload`
        close,       ///< it is over
        time_passed, ///< nothing happened up to this time
    };
    Kind kind = Kind::time_passed;
    record::Timestamp time = 0;
    std::uint32_t session = 0;
    std::string_view server{};
    std::string_view server_name{}; ///< lives as long as the run; empty: it has none
    bool resumed = false;           ///< opened: another process had it until now
    const record::MapRecord* map = nullptr;
    snapshot::Tick tick = 0;
    snapshot::SnapshotView items{};
    const record::World* world = nullptr; ///< where positions land; null while no map is known
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const record::Roster* roster = nullptr; ///< who plays; only of 0.7
    std::int32_t client_version = 0;        ///< as DDNet counts them; 0: vanilla, or not known
    std::span<const std::byte> payload{};   ///< as of record::MessageRecord
};

/// Takes inputs; what it wants to keep, it copies.
class InputSink {
  public:
    InputSink() = default;
    InputSink(const InputSink&) = delete;
    InputSink& operator=(const InputSink&) = delete;
    InputSink(InputSink&&) = delete;
    InputSink& operator=(InputSink&&) = delete;
    virtual ~InputSink() = default;

    virtual void on_input(const Input& input) = 0;
};

} // namespace tw::game
