#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tw::test {

/// One UDP datagram of a capture.
struct CapturedDatagram {
    std::int64_t time_us = 0; ///< microseconds since 1970
    std::uint32_t source_address = 0;
    std::uint32_t destination_address = 0;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
    std::vector<std::byte> payload;
};

/// Returns all UDP datagrams of a gzipped classic pcap of Ethernet and IPv4, as in
/// tests/data/captures. Throws std::runtime_error for any other file.
[[nodiscard]] std::vector<CapturedDatagram> read_capture(const std::string& path);

} // namespace tw::test
