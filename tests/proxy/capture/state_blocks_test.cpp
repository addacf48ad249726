// Covers: proxy/capture/capture_file.cpp
#include "proxy/capture/capture_file.h"
#include "proxy/sink/pcapng.h"
#include "tests/support/capture_writer.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;

namespace {

using Bytes = std::vector<std::byte>;

/// Builds a file of packets and states as twscope writes it.
class File {
  public:
    File() : bytes_{sink::CaptureBlocks::head()} {}

    File& packet() {
        Bytes frame;
        sink::make_udp_frame(kClient, kServer, Bytes(10, std::byte{1}), frame);
        sink::PcapngEncoder{}.append_packet({.frame = frame}, bytes_);
        return *this;
    }

    File& state(const std::string& text) {
        sink::put_session_state(
            {.client = kClient, .server = kServer, .bytes = std::as_bytes(std::span{text})},
            bytes_);
        return *this;
    }

    File& block(std::uint32_t type, std::size_t size) {
        sink::PcapngEncoder{}.append_block(type, Bytes(size, std::byte{0x6b}), bytes_);
        return *this;
    }

    File& section() {
        const Bytes head = sink::CaptureBlocks::head();
        return raw(head);
    }

    File& raw(const Bytes& bytes) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return *this;
    }

    [[nodiscard]] const Bytes& bytes() const { return bytes_; }

  private:
    static constexpr sink::FrameEndpoint kClient{.address = {127, 0, 0, 1}, .port = 50000};
    static constexpr sink::FrameEndpoint kServer{.address = {127, 0, 0, 1}, .port = 8303};

    Bytes bytes_;
};

/// Returns the states before the packets of a capture; "-" for a packet without a state. Checks that
/// a state has the endpoints of its packet.
std::string states_in(std::span<const std::byte> bytes) {
    const test::TemporaryFile file{bytes};
    capture::CaptureFile capture{file.path()};
    capture::CapturedDatagram datagram;
    std::string text;
    while (capture.read_datagram(datagram)) {
        if (datagram.state == nullptr) {
            text += '-';
            continue;
        }
        CHECK(datagram.state->client == datagram.source);
        CHECK(datagram.state->server == datagram.destination);
        for (const std::byte byte : datagram.state->bytes) {
            text += static_cast<char>(byte);
        }
    }
    return text;
}

} // namespace

TEST_CASE("a state belongs to the packet after it") {
    struct Row {
        const char* name;
        Bytes bytes;
        std::string states;
    };

    Bytes broken = File{}.packet().state("a").packet().state("b").packet().bytes();
    broken[File{}.packet().bytes().size() + 4] = std::byte{3}; // an invalid block length
    const Row rows[] = {
        {"at the beginning", File{}.state("a").packet().packet().bytes(), "a-"},
        {"in the middle", File{}.packet().packet().state("c").packet().bytes(), "--c"},
        {"two in a row: the last", File{}.state("a").state("b").packet().bytes(), "b"},
        {"before each", File{}.state("a").packet().state("b").packet().bytes(), "ab"},
        {"at the end", File{}.packet().state("b").bytes(), "-"},
        {"behind another section", File{}.packet().section().state("b").packet().bytes(), "-b"},
        {"among blocks of others",
         File{}.block(5, 64).state("a").block(0x8000beef, 3).packet().bytes(), "a"},
        {"of the type, and another's",
         File{}.block(sink::kStateBlock, 100).packet().state("b").packet().bytes(), "-b"},
        {"of the type, and empty",
         File{}.block(sink::kStateBlock, 0).packet().state("b").packet().bytes(), "-b"},
        {"of the type, and too large",
         File{}.block(sink::kStateBlock, 5'000'000).packet().state("b").packet().bytes(), "-b"},
        {"behind a broken block", broken, "-"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(states_in(row.bytes) == row.states);
    }
}

TEST_CASE("a capture cut at any byte gives the complete states") {
    const Bytes bytes = File{}.state("a").packet().state("b").packet().bytes();
    for (std::size_t size = File{}.bytes().size(); size < bytes.size(); ++size) {
        CAPTURE(size);
        const std::string states = states_in(std::span{bytes}.first(size));
        CHECK((states.empty() || states == "a"));
    }
}

TEST_CASE("states are found behind a section in the other byte order, too") {
    const auto frame = test::FrameBytes(60, std::byte{0});
    Bytes bytes = test::pcapng_file(true, 1, 9, {{1, frame}, {2, frame}});
    const Bytes more = File{}.state("c").packet().bytes();
    bytes.insert(bytes.end(), more.begin(), more.end());
    CHECK(states_in(bytes) == "c");
}
