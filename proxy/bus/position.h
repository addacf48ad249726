#pragma once

#include "proxy/bus/link.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::bus {

/// States that all records of a stream up to a sequence number are written.
struct StreamPosition {
    std::int64_t created = 0; ///< creation time of the stream; a recreated stream starts again at 1
    std::uint64_t last = 0;   ///< sequence number of the last record written
    std::string batch{};      ///< name of the batch with that record

    friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};

/// Returns a position as a text. Layout: "CREATED LAST BATCH".
[[nodiscard]] std::string position_text(const StreamPosition& position);
/// Parses the result of position_text(); nullopt if the text is invalid or by an earlier version, which
/// wrote "BATCH CREATED RANGES".
[[nodiscard]] std::optional<StreamPosition> read_position(std::string_view text);

/// Stores the position of one consumer, as the last message of the consumer's own subject in the stream
/// STREAM-collected. A collector can add a message only if it knows the previous one. A collector that
/// was replaced by another one therefore fails to set its position, and rolls its batch back.
class PositionStore {
  public:
    /// Creates the store's stream if it does not exist, and reads the position.
    [[nodiscard]] static BusResult<PositionStore>
    open(const BusConnection& link, const std::string& stream, const std::string& consumer);

    /// The position; its `created` is 0 if there is none.
    [[nodiscard]] const StreamPosition& current() const { return current_; }

    /// Sets the position. Returns false, and changes nothing, if another collector has set it meanwhile.
    [[nodiscard]] BusResult<bool> set_position(const StreamPosition& position);

    /// Returns true if a position with this batch was ever set. After false it never will be: this call
    /// makes the server reject any message in flight that sets such a position.
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
    StreamPosition current_;
};

} // namespace tw::bus
