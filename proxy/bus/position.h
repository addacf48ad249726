#pragma once

#include "proxy/bus/link.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::bus {

/// How far the records of a stream are written: all up to a sequence number.
struct Position {
    std::int64_t created =
        0;                  ///< creation time of the stream; one that was created again counts anew
    std::uint64_t last = 0; ///< sequence number of the last record written
    std::string batch{};    ///< the batch with that record

    friend bool operator==(const Position&, const Position&) = default;
};

/// Returns a position as a text. Layout: "CREATED LAST BATCH".
[[nodiscard]] std::string position_text(const Position& position);
/// Parses the result of position_text(); nullopt if the text is invalid or by an earlier version, which
/// wrote "BATCH CREATED RANGES".
[[nodiscard]] std::optional<Position> read_position(std::string_view text);

/// Stores the position of one consumer, as the last message of the consumer's own subject in the stream
/// STREAM-collected. Only a collector that knows the last message can add the next one. So a collector
/// that was replaced by another one notices this, and takes its batch back.
class PositionStore {
  public:
    /// Creates the store's stream if it does not exist, and reads the position.
    [[nodiscard]] static BusResult<PositionStore>
    open(const BusConnection& link, const std::string& stream, const std::string& consumer);

    /// The position; its `created` is 0 if there is none.
    [[nodiscard]] const Position& current() const { return current_; }

    /// Sets the position, unless another collector has set it since: then returns false.
    [[nodiscard]] BusResult<bool> set(const Position& position);

    /// Returns whether a position with this batch was ever set. If not, it never will be: a message
    /// that sets it and is still on the way is rejected after this call.
    [[nodiscard]] BusResult<bool> find_batch(const std::string& batch);

  private:
    PositionStore(const BusConnection& link, const std::string& stream,
                  const std::string& consumer);

    [[nodiscard]] BusResult<void> make_stream() const;
    [[nodiscard]] BusResult<void> read_last();

    const BusConnection* link_;
    std::string stream_;
    std::string subject_;
    std::uint64_t message_ = 0; ///< sequence number of the position's message; 0 if there is none
    Position current_;
};

} // namespace tw::bus
