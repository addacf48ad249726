#pragma once

#include "proxy/record/records.h"

#include <cstddef>
#include <span>

namespace tw::sink {

/// Takes every datagram that is looked at: before that, and again after it, when the records about it
/// have passed.
class DatagramSink {
  public:
    DatagramSink() = default;
    DatagramSink(const DatagramSink&) = delete;
    DatagramSink& operator=(const DatagramSink&) = delete;
    DatagramSink(DatagramSink&&) = delete;
    DatagramSink& operator=(DatagramSink&&) = delete;
    virtual ~DatagramSink() = default;

    /// `datagram` stays valid until its end.
    virtual void on_datagram(const record::RecordHead& head,
                             std::span<const std::byte> datagram) = 0;
    virtual void on_datagram_end() = 0;
};

} // namespace tw::sink
