#pragma once

#include "proxy/analyze/explanation.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "proxy/wire/packet.h"
#include "snapshot/item.h"
#include "snapshot/parts.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::analyze {

/// Notes the datagrams of a capture in which snapshots arrive, and the snapshots' positions in the datagrams.
class SnapshotDatagrams final : public inspect::Observer {
  public:
    /// The position of a datagram in its capture.
    struct DatagramPosition {
        std::string_view file{};
        std::uint64_t frame = 0; ///< number of the frame in the file, from 1
        record::Timestamp time = 0;
    };

    /// The most datagrams kept for each session: as many as the largest snapshot has parts.
    static constexpr std::size_t kMaxDatagrams = snapshot::kMaxParts;
    /// The most sessions whose datagrams are kept, because an attacker can cause any number of sessions.
    static constexpr std::size_t kMaxSessions = 4096;

    /// `place`: returns the position of the datagram being read. `on_read`: called after each datagram.
    SnapshotDatagrams(std::function<DatagramPosition()> place, std::function<void()> on_read)
        : place_{std::move(place)}, on_read_{std::move(on_read)} {}

    /// Returns the latest datagrams with this tick of the session, by part.
    [[nodiscard]] std::vector<SnapshotDatagram> find(std::int64_t session, std::int64_t tick) const;

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_part(const inspect::PartSeen& part) override;

    void on_datagram_end() override { on_read_(); }

  private:
    struct KeptDatagram {
        snapshot::Tick tick = 0;
        SnapshotDatagram datagram;
    };

    std::function<DatagramPosition()> place_;
    std::function<void()> on_read_;
    std::uint32_t session_ = 0;                              ///< session of the datagram being read
    SnapshotDatagram current_;                               ///< the datagram being read
    std::span<const std::byte> payload_;                     ///< its decompressed payload
    std::map<std::uint32_t, std::deque<KeptDatagram>> kept_; ///< by session, oldest first
};

} // namespace tw::analyze
