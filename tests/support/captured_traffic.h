#pragma once

#include "proxy/inspect/inspector.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tw::test {

/// One datagram of a capture, as the inspector wants it.
struct TrafficDatagram {
    std::uint64_t session = 0; ///< the client's port
    wire::Direction direction = wire::Direction::c2s;
    record::Timestamp time = 0;
    std::vector<std::byte> bytes;
};

/// All datagrams of tests/data/captures/NAME. The server is who takes part in everything.
[[nodiscard]] std::vector<TrafficDatagram> read_traffic(const std::string& name);

/// There are no maps.
class NoMaps final : public inspect::MapSource {
  public:
    inspect::FoundMap find(const inspect::MapAnnouncement& announcement) override;
    inspect::FoundMap keep(const inspect::MapAnnouncement& announcement,
                           std::vector<std::byte> bytes) override;
};

/// An inspector that opens a session for every client it sees.
class TrafficInspector {
  public:
    TrafficInspector(const inspect::Options& options, record::RecordSink& sink)
        : inspector_{options, maps_, sink, numbers_} {}

    /// `next`: the one of the next call, where that is at hand.
    void on_datagram(const TrafficDatagram& datagram, const TrafficDatagram* next = nullptr);
    void finish();

    [[nodiscard]] inspect::Inspector& inspector() { return inspector_; }

  private:
    NoMaps maps_;
    std::atomic<std::uint32_t> numbers_{0};
    std::vector<bool> open_ = std::vector<bool>(65536);
    record::Timestamp last_ = 0;
    inspect::Inspector inspector_;
};

} // namespace tw::test
