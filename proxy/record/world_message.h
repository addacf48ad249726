#pragma once

#include "proxy/record/records.h"
#include "proxy/wire/message.h"
#include "snapshot/item.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tw::record {

/// What a server told everybody, however many sessions it was told in. It belongs to the world that was
/// made last of this server and run.
struct WorldMessage {
    Timestamp time = 0;        ///< when the first session was told
    std::string_view server{}; ///< its address
    std::uint32_t run = 1;
    const wire::MessageSpec* spec = nullptr;    ///< of the world's dialect; never null
    std::span<const wire::FieldValue> values{}; ///< clients have the ids of the world
    std::span<const std::byte> payload{};       ///< the same as bytes
};

/// Takes them; what it wants to keep, it copies.
class WorldMessageSink {
  public:
    WorldMessageSink() = default;
    WorldMessageSink(const WorldMessageSink&) = delete;
    WorldMessageSink& operator=(const WorldMessageSink&) = delete;
    WorldMessageSink(WorldMessageSink&&) = delete;
    WorldMessageSink& operator=(WorldMessageSink&&) = delete;
    virtual ~WorldMessageSink() = default;

    virtual void on_world_message(const WorldMessage& message) = 0;
};

} // namespace tw::record
