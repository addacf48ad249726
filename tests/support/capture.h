#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tw::test {

/// One UDP datagram of a capture.
struct CapturedDatagram {
    std::int64_t time_us = 0; ///< since 1970
    std::uint32_t source_address = 0;
    std::uint32_t destination_address = 0;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
    std::vector<std::byte> payload;
};

/// All UDP datagrams of a gzipped classic pcap of Ethernet and IPv4, as tests/data/captures holds
/// them. For tests and benchmarks only: throws std::runtime_error on anything else.
[[nodiscard]] std::vector<CapturedDatagram> read_capture(const std::string& path);

} // namespace tw::test
