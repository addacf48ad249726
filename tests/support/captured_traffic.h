#pragma once

#include "proxy/inspect/inspector.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tw::test {

/// A datagram of a capture, as the inspector gets it.
struct TrafficDatagram {
    std::uint64_t session = 0; ///< the client's port
    wire::Direction direction = wire::Direction::c2s;
    record::Timestamp time = 0;
    std::vector<std::byte> bytes;
};

/// Returns all datagrams of tests/data/captures/NAME. The server is the address in all of them.
[[nodiscard]] std::vector<TrafficDatagram> read_traffic(const std::string& name);

/// A sink that ignores all records.
class NoSink final : public record::RecordSink {
  public:
    void on_record(const record::Record& /*record*/) override {}
};

/// Passes every record to both sinks.
class BothSinks final : public record::RecordSink {
  public:
    BothSinks(record::RecordSink& first, record::RecordSink& second)
        : first_{&first}, second_{&second} {}

    void on_record(const record::Record& record) override {
        first_->on_record(record);
        second_->on_record(record);
    }

  private:
    record::RecordSink* first_;
    record::RecordSink* second_;
};

/// A source without maps.
class NoMaps final : public inspect::MapSource {
  public:
    inspect::MapSearchResult find_map(const inspect::MapAnnouncement& announcement) override;
    inspect::MapSearchResult store_map(const inspect::MapAnnouncement& announcement,
                                       std::vector<std::byte> bytes) override;
};

/// An inspector for captured datagrams; opens a session for each client.
class TrafficInspector {
  public:
    TrafficInspector(const inspect::Options& options, record::RecordSink& sink)
        : inspector_{options, maps_, sink, numbers_} {}

    /// `next`: the datagram of the next call, if known.
    void on_datagram(const TrafficDatagram& datagram, const TrafficDatagram* next = nullptr);
    void finish();
    /// Inspects all datagrams, then calls finish().
    void play(const std::vector<TrafficDatagram>& traffic);

    [[nodiscard]] inspect::Inspector& inspector() { return inspector_; }

  private:
    NoMaps maps_;
    std::atomic<std::uint32_t> numbers_{0};
    std::vector<bool> open_ = std::vector<bool>(65536);
    record::Timestamp last_ = 0;
    inspect::Inspector inspector_;
};

} // namespace tw::test
