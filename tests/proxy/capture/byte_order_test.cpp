// Covers: proxy/capture/capture_file.cpp
#include "proxy/capture/capture_file.h"
#include "tests/support/capture_writer.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;

namespace {

constexpr std::uint32_t kEthernet = 1;

FrameBytes frame(std::size_t size) {
    FrameBytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>(i);
    }
    return bytes;
}

/// Returns a section with frames of several sizes at these times, in microseconds.
FrameBytes section(bool big_endian) {
    return pcapng_file(big_endian, kEthernet, 6,
                       {{1'700'000'000'000'001, frame(60)},
                        {1'700'000'000'000'002, frame(61)},
                        {1'700'000'000'000'003, frame(1)}});
}

FrameBytes joined(const std::vector<FrameBytes>& parts) {
    FrameBytes all;
    for (const FrameBytes& part : parts) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

/// Returns the converted bytes if this many bytes are requested, and returned by the source, at a time.
FrameBytes passed(const FrameBytes& file, std::size_t asked, std::size_t found) {
    capture::ByteOrderConverter order;
    std::size_t at = 0;
    const auto source = [&](std::span<std::byte> room) {
        const std::size_t size = std::min({room.size(), found, file.size() - at});
        std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(at), size, room.begin());
        at += size;
        return size;
    };
    FrameBytes all;
    std::vector<std::byte> room(asked);
    while (const std::size_t size = order.read(room, source)) {
        all.insert(all.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(size));
    }
    return all;
}

} // namespace

TEST_CASE("all sections are converted to the first one's byte order, whatever the sizes of reads") {
    for (const bool first : {false, true}) {
        const FrameBytes own = section(first);
        const FrameBytes other = section(!first);
        const FrameBytes mixed = joined({own, other, other, own, other});
        const FrameBytes wanted = joined({own, own, own, own, own});
        for (const auto& sizes : {std::pair<std::size_t, std::size_t>{1, 1},
                                  {8, 8},
                                  {8, 3},
                                  {64, 7},
                                  {4096, 4096},
                                  {24, 1000}}) {
            CAPTURE(first);
            CAPTURE(sizes.first);
            CHECK((passed(mixed, sizes.first, sizes.second) == wanted));
        }
    }
}

TEST_CASE("data that is not pcapng, or is truncated or damaged, passes unchanged") {
    const FrameBytes own = section(false);
    const FrameBytes other = section(true);
    const FrameBytes plain = pcap_file({}, {{.bytes = frame(60)}, {.bytes = frame(9)}});
    for (const FrameBytes& file : {plain, frame(5), FrameBytes{}, own}) {
        CHECK((passed(file, 16, 16) == file));
    }
    const FrameBytes mixed = joined({own, other});
    for (std::size_t size = own.size(); size < mixed.size(); ++size) {
        CAPTURE(size);
        CHECK(passed({mixed.begin(), mixed.begin() + static_cast<std::ptrdiff_t>(size)}, 64, 64)
                  .size() == size);
    }
    FrameBytes damaged = mixed;
    damaged[own.size() + 4] = std::byte{0xff}; // damages the size of the section block
    CHECK(passed(damaged, 64, 64).size() == damaged.size());
}

TEST_CASE("a file with sections of both byte orders is read to its end") {
    const TemporaryFile file{joined({section(false), section(true), section(false)})};
    capture::CaptureFile capture{file.path()};
    capture::CapturedDatagram datagram;
    while (capture.read_datagram(datagram)) {
    }
    CHECK(capture.counts().frames == 9);
    CHECK(capture.read_error() == "");
    CHECK_FALSE(capture.counts().ended_early);
}
