#pragma once

#include "proxy/capture/capture_sink.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tw::test {

/// Capture blocks of packets with these sizes. Every other byte looks like a line's end; the others
/// do not compress to nothing.
inline std::string packets(const std::vector<std::size_t>& sizes) {
    std::string text;
    capture::CaptureBlockBuffer block_buffer{[&text](std::span<const std::byte> blocks) {
        text.append(reinterpret_cast<const char*>(blocks.data()), blocks.size());
        return true;
    }};
    std::uint32_t state = 1;
    for (const std::size_t size : sizes) {
        std::vector<std::byte> datagram(size, std::byte{'\n'});
        for (std::size_t i = 0; i < size; i += 2) {
            state = state * 1664525U + 1013904223U;
            datagram[i] = static_cast<std::byte>(state >> 24U);
        }
        block_buffer.encoder().on_datagram({.session = 1}, datagram);
        block_buffer.end_datagram();
    }
    block_buffer.flush();
    return text;
}

} // namespace tw::test
