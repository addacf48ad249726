#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace tw::sink {

/// What items take of a snapshot.
struct DemoRoom {
    std::size_t items = 0;
    std::size_t bytes = 0;
};

/// What clients of 0.7 put into each snapshot of a demo: who plays, how the game goes and how it is
/// tuned. They are told by messages, and a player that seeks would miss these.
class SevenDemoItems {
  public:
    /// Another map, or another connection.
    void clear() { *this = {}; }

    void on_message(const record::MessageRecord& record);

    /// Whether such items of a snapshot count: those of a demo do, and no server sends them.
    enum class Theirs : bool { left_out, taken };

    /// The items of a snapshot with them. `roster`: null, or who plays, where no message told more.
    void add(const snapshot::SnapshotView& items, const record::Roster* roster,
             snapshot::Snapshot& out, Theirs theirs = Theirs::left_out) const;

    /// What they take where no message told of anybody.
    [[nodiscard]] static DemoRoom room_of(const record::Roster* roster);

  private:
    static constexpr std::uint16_t kClientInfo = 13; ///< de_client_info, and so on
    static constexpr std::uint16_t kGameInfo = 14;
    static constexpr std::uint16_t kTuneParams = 15;
    static constexpr std::size_t kTeam = 1; ///< in a de_client_info
    static constexpr std::size_t kName = 2;
    static constexpr std::size_t kCountry = 9;
    static constexpr std::size_t kSkinPartNames = 10;
    static constexpr std::size_t kSkinPartInts = 6; ///< of each
    static constexpr std::size_t kSkinParts = 6;

    using ClientInfo = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kClientInfo]>;
    using GameInfo = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kGameInfo]>;
    using TuneParams = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kTuneParams]>;

    /// What a demo that is read says of the game, where no message told it.
    void take_from(const snapshot::ItemView& item);
    /// One of whom nothing is told.
    [[nodiscard]] static ClientInfo unknown_client();
    void add_own(const record::Roster* roster, snapshot::Snapshot& out) const;

    std::map<std::uint16_t, ClientInfo> clients_; ///< by client id, below Roster::kMaxClients
    std::optional<GameInfo> game_;
    std::optional<TuneParams> tuning_;
};

} // namespace tw::sink
