#pragma once

#include "proxy/record/player_name.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::record {

/// Who plays, as servers of 0.7 tell it: once, by messages (0.7 sheet, section 6.2). 0.6 says the
/// same in every snapshot.
class Roster {
  public:
    static constexpr std::size_t kMaxClients = 64; ///< that 0.7 can name

    struct Player {
        std::int32_t client_id = 0;
        bool own = false;      ///< the receiver's
        std::string_view name; ///< bytes as they stand
    };

    /// Somebody joined, or is told of again. A client id out of range is ignored, as by clients.
    void join(const Player& player);
    void leave(std::int32_t client_id);

    /// Another map: all of it is told again.
    void clear() { *this = {}; }

    /// Nothing: it was not told. Names are packed as snapshots of 0.6 pack them.
    [[nodiscard]] std::optional<PackedText> name(std::uint16_t client) const;

    /// The receiver's own client.
    [[nodiscard]] std::optional<std::uint16_t> own() const { return own_; }

  private:
    using Name = std::array<std::int32_t, kPlayerNameInts>;

    std::array<std::optional<Name>, kMaxClients> names_{};
    std::optional<std::uint16_t> own_;
};

} // namespace tw::record
